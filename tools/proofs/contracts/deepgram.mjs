// Deepgram's SDK: transcriptions, speech complete and streamed, and errors.
import assert from 'node:assert/strict';
import { DeepgramClient, DeepgramError } from '@deepgram/sdk';

const { SANDBOX_URL, RECORDING } = process.env;
const base = `${SANDBOX_URL}/deepgram`;
const environment = { base, production: base, agent: base, agentRest: base };
const client = new DeepgramClient({ apiKey: 'k', environment, maxRetries: 0 });
const recording = new Uint8Array(Buffer.from(RECORDING, 'base64'));
const listen = (file, options = {}) => client.listen.v1.media.transcribeFile(file, { model: 'nova-3', ...options });
const speak = (text, options = {}) => client.speak.v1.audio.generate({ text, model: 'aura-2-thalia-en', ...options });

const { metadata, results } = await listen(recording, { smart_format: true, utterances: true });
assert.equal(metadata.duration, 3);
const [alternative] = results.channels[0].alternatives;
assert.equal(alternative.transcript, 'Grüezi, you. Three?');
assert.equal(alternative.words[2].punctuated_word, 'Three?');
assert.equal(alternative.paragraphs.paragraphs[0].num_words, 3);
assert.equal(results.utterances.length, 2);
const detected = await listen(recording, { detect_language: true });
assert.equal(detected.results.channels[0].detected_language, 'en');

for (const [request, statusCode] of [
  [() => client.listen.v1.media.transcribeUrl({ url: `${SANDBOX_URL}/nothing`, model: 'nova-3' }), 400],
  [() => listen(new Uint8Array([1])), 400],
  [() => listen(recording, { model: 'nova-9' }), 400],
  [() => speak('a'.repeat(2_001)), 413],
  [() => speak('Hello', { model: 'x' }), 400],
]) {
  await assert.rejects(request, (error) => error instanceof DeepgramError && error.statusCode === statusCode);
}

const { data, rawResponse } = await speak('Hello [[sandbox chunk_delay=5 chunks=3]]').withRawResponse();
let chunks = 0;
for await (const _ of data.stream()) chunks += 1;
assert.ok(chunks > 1);
assert.equal(rawResponse.headers.get('dg-char-count'), '40');
for (const [options, start] of [
  [{ encoding: 'linear16', container: 'wav', sample_rate: 24_000 }, 'RIFF'],
  [{ encoding: 'opus', container: 'ogg' }, 'OggS'],
  [{ encoding: 'flac' }, 'fLaC'],
]) {
  const bytes = Buffer.from(await (await speak('Hello', options)).arrayBuffer());
  assert.equal(bytes.toString('latin1', 0, start.length), start);
}
await assert.rejects(async () => (await speak('[[sandbox fault=cut]]')).arrayBuffer(), /terminated/);
