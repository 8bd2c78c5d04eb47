import { type ElevenLabs, ElevenLabsClient } from '@elevenlabs/elevenlabs-js';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: ElevenLabsClient;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new ElevenLabsClient({ apiKey: 'k', baseUrl: `${sandbox.url}/elevenlabs`, maxRetries: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const VOICE = '21m00Tcm4TlvDq8ikWAM';
const bytesOf = async (stream: ReadableStream<Uint8Array>) => Buffer.from(await new Response(stream).arrayBuffer());
const say = (text: string, more: Partial<ElevenLabs.BodyTextToSpeechFull> = {}, voice = VOICE) =>
  client.textToSpeech.convert(voice, { text, modelId: 'eleven_flash_v2_5', ...more });

describe("ElevenLabs' speech through its own client", () => {
  test('is streamed in chunks and costs half a credit per character with Flash v2.5', async () => {
    const text = 'Grüezi 👋 [[sandbox chunk_delay=5 chunks=3]]';
    const { data, rawResponse } = await client.textToSpeech
      .stream(VOICE, { text, modelId: 'eleven_flash_v2_5', languageCode: 'de' })
      .withRawResponse();
    let pieces = 0;
    for await (const _ of data) pieces += 1;
    expect(pieces).toBeGreaterThan(1);
    const { headers } = rawResponse;
    expect([headers.get('content-type'), headers.get('x-character-count'), headers.get('character-cost')]).toEqual([
      'audio/mpeg',
      '43',
      '22',
    ]);
    expect(await bill()).toEqual({ total_usd: '0.00215', lines: 1 });
  });

  test.each<[ElevenLabs.TextToSpeechConvertRequestOutputFormat, string]>([
    ['mp3_44100_128', '\xff\xfb'],
    ['opus_48000_128', 'OggS'],
    ['wav_24000', 'RIFF'],
    ['pcm_24000', ''],
    ['ulaw_8000', '\xff\xff'],
  ])('has the requested format: %s', async (outputFormat, start) => {
    const bytes = await bytesOf(await say('Hello', { outputFormat }));
    expect(bytes.length).toBeGreaterThan(100);
    expect(bytes.toString('latin1', 0, start.length)).toBe(start);
  });

  test.each<[string, () => Promise<unknown>, number]>([
    ['an unknown voice', () => say('a', {}, 'x'), 404],
    ['an unknown model', () => say('a', { modelId: 'eleven_v9' }), 400],
    ['a text that is too long', () => say('a'.repeat(5_001), { modelId: 'eleven_v3' }), 400],
    ['an empty text', () => say(''), 400],
    [
      'a language for a model that does not accept one',
      () => say('a', { modelId: 'eleven_multilingual_v2', languageCode: 'de' }),
      400,
    ],
    ['a speed above the maximum', () => say('a', { voiceSettings: { speed: 2 } }), 400],
    ['forbidden content', () => say('[[sandbox fault=policy]]'), 400],
    ['a request beyond a rate limit', () => say('[[sandbox fault=429]]'), 429],
  ])('rejects %s without charging', async (_, ask, statusCode) => {
    await expect(ask()).rejects.toMatchObject({ statusCode, body: { detail: expect.anything() } });
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('is billed even if it is interrupted or lost', async () => {
    await expect(say('[[sandbox fault=cut]]').then(bytesOf)).rejects.toThrow('terminated');
    const body = JSON.stringify({ text: '[[sandbox fault=lost]]' }); // the client would leave a timer running
    const url = `${sandbox.url}/elevenlabs/v1/text-to-speech/${VOICE}`;
    await expect(fetch(url, { method: 'POST', headers: { 'xi-api-key': 'k' }, body })).rejects.toThrow('fetch failed');
    expect(await bill()).toMatchObject({ lines: 2 });
  });
});

test.each([
  ['?output_format=mp3', { text: 'a' }, ['query', 'output_format']],
  ['/stream?output_format=wav_24000', { text: 'a' }, ['query', 'output_format']], // a WAV header contains the length
  ['', {}, ['body', 'text']],
])('ElevenLabs responds to an invalid field with its location: "%s" with %j, at %j', async (rest, body, loc) => {
  const url = `${sandbox.url}/elevenlabs/v1/text-to-speech/${VOICE}${rest}`;
  const answer = await fetch(url, { method: 'POST', headers: { 'xi-api-key': 'k' }, body: JSON.stringify(body) });
  expect([answer.status, await answer.json()]).toEqual([422, { detail: [expect.objectContaining({ loc })] }]);
});

test('ElevenLabs lists its models, and its voices at once or in pages', async () => {
  const models = await client.models.list();
  expect(models.map(({ modelId, modelRates }) => [modelId, modelRates?.characterCostMultiplier])).toContainEqual([
    'eleven_flash_v2_5',
    0.5,
  ]);
  const { voices } = await client.voices.getAll();
  expect(voices).toContainEqual(expect.objectContaining({ voiceId: VOICE, name: 'Rachel' }));
  const first = await client.voices.search({ pageSize: 4 });
  expect(first).toMatchObject({ hasMore: true, totalCount: voices.length });
  const second = await client.voices.search({ pageSize: 4, nextPageToken: first.nextPageToken ?? '' });
  expect([...first.voices, ...second.voices].map(({ voiceId }) => voiceId)).toEqual(
    voices.map(({ voiceId }) => voiceId),
  );
});
