// ElevenLabs' SDK: speech complete and streamed, errors, and the lists of models and voices.
import assert from 'node:assert/strict';
import { ElevenLabsClient } from '@elevenlabs/elevenlabs-js';

const { SANDBOX_URL } = process.env;
const client = new ElevenLabsClient({ apiKey: 'k', baseUrl: `${SANDBOX_URL}/elevenlabs`, maxRetries: 0 });
const VOICE = '21m00Tcm4TlvDq8ikWAM';
const FLASH = 'eleven_flash_v2_5';
const speak = (text, options = {}, voice = VOICE) =>
  client.textToSpeech.convert(voice, { text, modelId: FLASH, ...options });
const read = async (stream) => Buffer.from(await new Response(stream).arrayBuffer());

const { data, rawResponse } = await client.textToSpeech
  .stream(VOICE, { text: 'Grüezi 👋 [[sandbox chunk_delay=5 chunks=3]]', modelId: FLASH, languageCode: 'de' })
  .withRawResponse();
let chunks = 0;
for await (const _ of data) chunks += 1;
assert.ok(chunks > 1);
assert.equal(rawResponse.headers.get('content-type'), 'audio/mpeg');
assert.equal(rawResponse.headers.get('character-cost'), '22');

for (const [outputFormat, start] of [
  ['mp3_44100_128', '\xff\xfb'],
  ['opus_48000_128', 'OggS'],
  ['wav_24000', 'RIFF'],
  ['ulaw_8000', '\xff\xff'],
]) {
  const bytes = await read(await speak('Hello', { outputFormat }));
  assert.equal(bytes.toString('latin1', 0, start.length), start, outputFormat);
}

for (const [request, statusCode] of [
  [() => speak('a', {}, 'x'), 404],
  [() => speak('a', { modelId: 'eleven_v9' }), 400],
  [() => speak('a', { voiceSettings: { speed: 2 } }), 400],
  [() => speak('[[sandbox fault=policy]]'), 400],
  [() => speak('[[sandbox fault=429]]'), 429],
]) {
  await assert.rejects(request, (error) => error.statusCode === statusCode && error.body.detail !== undefined);
}
await assert.rejects(async () => read(await speak('[[sandbox fault=cut]]')), /terminated/);

const models = await client.models.list();
assert.equal(models.find(({ modelId }) => modelId === FLASH).modelRates.characterCostMultiplier, 0.5);
const { voices } = await client.voices.getAll();
assert.ok(voices.some(({ voiceId, name }) => voiceId === VOICE && name === 'Rachel'));
const first = await client.voices.search({ pageSize: 4 });
assert.equal(first.hasMore, true);
const second = await client.voices.search({ pageSize: 4, nextPageToken: first.nextPageToken });
const getIds = (list) => list.map(({ voiceId }) => voiceId);
assert.deepEqual(getIds([...first.voices, ...second.voices]), getIds(voices));
