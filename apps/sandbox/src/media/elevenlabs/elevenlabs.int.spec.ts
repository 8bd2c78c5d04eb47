/** Requests as ElevenLabs' SDK sends them, which `npm run prove:contracts` runs itself. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const VOICE = '21m00Tcm4TlvDq8ikWAM';
const HEADERS = { 'xi-api-key': 'k', 'content-type': 'application/json' };

interface ModelEntry {
  readonly model_id: string;
  readonly model_rates?: { readonly character_cost_multiplier: number };
}

interface VoiceList {
  readonly voices: readonly { readonly voice_id: string }[];
  readonly next_page_token?: string;
}

const list = async (path: string) => (await fetch(`${sandbox.url}/elevenlabs${path}`, { headers: HEADERS })).json();
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

function post(path: string, body: object): Promise<Response> {
  const url = `${sandbox.url}/elevenlabs/v1/text-to-speech/${path}`;
  return fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify(body) });
}

const say = (text: string, fields: object = {}, voice = VOICE) =>
  post(voice, { text, model_id: 'eleven_flash_v2_5', ...fields });

describe("ElevenLabs' speech", () => {
  test('is streamed in chunks and costs half a credit per character with Flash v2.5', async () => {
    const text = 'Grüezi 👋 [[sandbox chunk_delay=5 chunks=3]]';
    const { body, headers } = await post(`${VOICE}/stream`, {
      text,
      model_id: 'eleven_flash_v2_5',
      language_code: 'de',
    });
    let pieces = 0;
    for await (const _ of body ?? []) pieces += 1;
    expect(pieces).toBeGreaterThan(1);
    expect([headers.get('content-type'), headers.get('x-character-count'), headers.get('character-cost')]).toEqual([
      'audio/mpeg',
      '43',
      '22',
    ]);
    expect(await bill()).toEqual({ total_usd: '0.00215', lines: 1 });
  });

  test.each([
    ['mp3_44100_128', '\xff\xfb'],
    ['opus_48000_128', 'OggS'],
    ['wav_24000', 'RIFF'],
    ['pcm_24000', ''],
    ['ulaw_8000', '\xff\xff'],
  ])('has the requested format: %s', async (format, start) => {
    const bytes = await bytesOf(await say('Hello', {}, `${VOICE}?output_format=${format}`));
    expect(bytes.length).toBeGreaterThan(100);
    expect(bytes.toString('latin1', 0, start.length)).toBe(start);
  });

  test.each<[string, () => Promise<Response>, number]>([
    ['an unknown voice', () => say('a', {}, 'x'), 404],
    ['an unknown model', () => say('a', { model_id: 'eleven_v9' }), 400],
    ['a text that is too long', () => say('a'.repeat(5_001), { model_id: 'eleven_v3' }), 400],
    ['an empty text', () => say(''), 400],
    [
      'a language for a model that does not accept one',
      () => say('a', { model_id: 'eleven_multilingual_v2', language_code: 'de' }),
      400,
    ],
    ['a speed above the maximum', () => say('a', { voice_settings: { speed: 2 } }), 400],
    ['forbidden content', () => say('[[sandbox fault=policy]]'), 400],
    ['a request beyond a rate limit', () => say('[[sandbox fault=429]]'), 429],
  ])('rejects %s without charging', async (_, ask, status) => {
    const response = await ask();
    expect([response.status, await response.json()]).toEqual([status, { detail: expect.anything() }]);
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('is billed even if it is interrupted or lost', async () => {
    await expect(say('[[sandbox fault=cut]]').then(bytesOf)).rejects.toThrow('terminated');
    await expect(say('[[sandbox fault=lost]]')).rejects.toThrow('fetch failed');
    expect(await bill()).toMatchObject({ lines: 2 });
  });
});

test.each([
  ['?output_format=mp3', { text: 'a' }, ['query', 'output_format']],
  ['/stream?output_format=wav_24000', { text: 'a' }, ['query', 'output_format']], // a WAV header contains the length
  ['', {}, ['body', 'text']],
])('ElevenLabs responds to an invalid field with its location: "%s" with %j, at %j', async (rest, body, loc) => {
  const answer = await post(`${VOICE}${rest}`, body);
  expect([answer.status, await answer.json()]).toEqual([422, { detail: [expect.objectContaining({ loc })] }]);
});

test('ElevenLabs lists its models, and its voices at once or in pages', async () => {
  const models = (await list('/v1/models')) as readonly ModelEntry[];
  expect(models.map((model) => [model.model_id, model.model_rates?.character_cost_multiplier])).toContainEqual([
    'eleven_flash_v2_5',
    0.5,
  ]);
  const { voices } = (await list('/v1/voices')) as VoiceList;
  expect(voices).toContainEqual(expect.objectContaining({ voice_id: VOICE, name: 'Rachel' }));
  const first = (await list('/v2/voices?page_size=4')) as VoiceList;
  expect(first).toMatchObject({ has_more: true, total_count: voices.length });
  const second = (await list(`/v2/voices?page_size=4&next_page_token=${first.next_page_token}`)) as VoiceList;
  expect([...first.voices, ...second.voices].map(({ voice_id }) => voice_id)).toEqual(
    voices.map(({ voice_id }) => voice_id),
  );
});
