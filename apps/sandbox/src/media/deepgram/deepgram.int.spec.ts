/** Requests as Deepgram's SDK sends them, which `npm run prove:contracts` runs itself. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AUDIO_FORMATS, createAudioFile } from '#testing';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const spoken = createAudioFile('wav', { seconds: 3, directive: '[[sandbox text="Grüezi, you. Three?"]]' });

interface Heard {
  readonly metadata: { readonly duration: number; readonly channels: number };
  readonly results: {
    readonly channels: readonly {
      readonly detected_language?: string;
      readonly alternatives: readonly Record<string, unknown>[];
    }[];
    readonly utterances?: readonly unknown[];
  };
}

/** Options are query parameters. The body is audio, or JSON. */
function post(operation: string, options: object, body: Buffer | object): Promise<Response> {
  const isAudio = Buffer.isBuffer(body);
  const type = isAudio ? 'application/octet-stream' : 'application/json';
  const headers = { authorization: 'Token k', 'content-type': type };
  const url = `${sandbox.url}/deepgram/v1/${operation}?${new URLSearchParams(Object.entries(options))}`;
  return fetch(url, { method: 'POST', headers, body: isAudio ? new Uint8Array(body) : JSON.stringify(body) });
}

const send = (file: Buffer, options: object = {}) => post('listen', { model: 'nova-3', ...options }, file);
const listen = async (file: Buffer, options: object = {}) => (await (await send(file, options)).json()) as Heard;

describe("Deepgram's transcription", () => {
  test('returns words with their times, and is billed by the length of the audio', async () => {
    const { metadata, results } = await listen(spoken, { smart_format: true, utterances: true });
    expect(metadata).toMatchObject({ duration: 3, channels: 1 });
    expect(results.channels[0]?.alternatives[0]).toMatchObject({
      transcript: 'Grüezi, you. Three?',
      words: [
        { word: 'grüezi', punctuated_word: 'Grüezi,', start: 0, end: 1 },
        { word: 'you', punctuated_word: 'you.', start: 1, end: 2 },
        { word: 'three', punctuated_word: 'Three?', start: 2, end: 3 },
      ],
      paragraphs: { paragraphs: [{ num_words: 3, sentences: [{ text: 'Grüezi, you.' }, { text: 'Three?', end: 3 }] }] },
    });
    expect(results.utterances).toMatchObject([
      { transcript: 'Grüezi, you.', end: 2 },
      { start: 2, end: 3 },
    ]);
    expect(await bill()).toEqual({ total_usd: '0.000215', lines: 1 });
  });

  test('returns plain text by default, and the detected language on request', async () => {
    const plain = (await listen(spoken)).results.channels[0];
    expect(plain?.alternatives[0]).toMatchObject({ transcript: 'grüezi you three' });
    expect(plain?.alternatives[0]).not.toHaveProperty('paragraphs');
    expect((await listen(spoken, { detect_language: true })).results.channels[0]?.detected_language).toBe('en');
    const mixed = await listen(spoken, { language: 'multi' });
    expect(mixed.results.channels[0]?.alternatives[0]).toMatchObject({
      languages: ['en'],
      words: [{ language: 'en' }, {}, {}],
    });
    expect(await bill()).toEqual({ total_usd: '0.00069', lines: 3 }); // multi is more expensive
  });

  test('on request, transcribes and bills each channel separately', async () => {
    const stereo = createAudioFile('wav', { seconds: 3, channels: 2 });
    expect((await listen(stereo)).results.channels).toHaveLength(1);
    expect((await listen(stereo, { multichannel: true })).results.channels).toHaveLength(2);
    expect(await bill()).toEqual({ total_usd: '0.000645', lines: 2 });
  });

  test.each([...AUDIO_FORMATS, 'ogg'] as const)('measures the true, not the claimed length: %s', async (format) => {
    const { metadata } = await listen(createAudioFile(format, { seconds: 20, claims: 0.1 }));
    expect(Math.abs(metadata.duration - 20)).toBeLessThan(0.03);
  });

  test('responds with 400 if it cannot fetch a URL', async () => {
    const url = `${sandbox.url}/nothing`;
    const response = await post('listen', { model: 'nova-3' }, { url });
    expect([response.status, await response.json()]).toMatchObject([400, { err_code: 'REMOTE_CONTENT_ERROR' }]);
  });

  test.each<[string, Buffer, object, number]>([
    ['data that is not audio', Buffer.from('text'), {}, 400],
    ['an unknown model', spoken, { model: 'nova-9' }, 400],
    ['an unsupported language', spoken, { language: 'tlh' }, 400],
    ['a request with a fault', createAudioFile('mp3', { seconds: 1, directive: '[[sandbox fault=429]]' }), {}, 429],
    [
      'a request with a fault whose error is plain text',
      createAudioFile('mp3', { seconds: 1, directive: '[[sandbox fault=overloaded]]' }),
      {},
      503,
    ],
  ])('rejects %s without charging', async (_, file, options, status) => {
    expect((await send(file, options)).status).toBe(status);
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});

describe("Deepgram's speech", () => {
  const say = (text: string, options: object = {}) =>
    post('speak', { model: 'aura-2-thalia-en', ...options }, { text });

  test('is streamed in chunks and billed by the character', async () => {
    const { body, headers } = await say('Hello [[sandbox chunk_delay=5 chunks=3]]');
    let pieces = 0;
    for await (const _ of body ?? []) pieces += 1;
    expect(pieces).toBeGreaterThan(1);
    expect(headers.get('content-type')).toBe('audio/mpeg');
    expect(headers.get('dg-char-count')).toBe('40');
    expect(await bill()).toEqual({ total_usd: '0.0012', lines: 1 });
  });

  test.each<[object, string]>([
    [{ encoding: 'linear16', container: 'wav', sample_rate: 24_000 }, 'RIFF'],
    [{ encoding: 'opus', container: 'ogg' }, 'OggS'],
    [{ encoding: 'flac' }, 'fLaC'],
    [{ encoding: 'aac' }, '\xff\xf1'],
    [{ encoding: 'mulaw', sample_rate: 8_000 }, '\xff\xff'],
  ])('has the requested format: %j', async (options, start) => {
    const bytes = Buffer.from(await (await say('Hello', options)).arrayBuffer());
    expect(bytes.toString('latin1', 0, start.length)).toBe(start);
  });

  test.each<[string, string, object, number]>([
    ['a text that is too long', 'a'.repeat(2_001), {}, 413],
    ['a blank text', ' ', {}, 400],
    ['an unknown voice', 'Hello', { model: 'x' }, 400],
    ['an unsupported container', 'Hello', { encoding: 'mp3', container: 'wav' }, 400],
    ['an unsupported sample rate', 'Hello', { encoding: 'linear16', sample_rate: 44_100 }, 400],
  ])('rejects %s without charging', async (_, text, options, status) => {
    expect((await say(text, options)).status).toBe(status);
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('is billed even if it is interrupted', async () => {
    const answer = await say('[[sandbox fault=cut]]');
    await expect(answer.arrayBuffer()).rejects.toThrow('terminated');
    expect(await bill()).toMatchObject({ lines: 1 });
  });
});

test('Deepgram requires a key', async () => {
  for (const path of ['listen?model=nova-3', 'speak?model=aura-2-thalia-en'])
    expect((await fetch(`${sandbox.url}/deepgram/v1/${path}`, { method: 'POST' })).status).toBe(401);
});
