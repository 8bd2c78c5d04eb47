import { DeepgramClient, DeepgramError } from '@deepgram/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AUDIO_FORMATS, createAudioFile } from '#testing';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: DeepgramClient;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const base = `${sandbox.url}/deepgram`;
  const environment = { base, production: base, agent: base, agentRest: base };
  client = new DeepgramClient({ apiKey: 'k', environment, maxRetries: 0 });
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

async function listen(file: Buffer, options: object = {}): Promise<Heard> {
  return (await client.listen.v1.media.transcribeFile(new Uint8Array(file), {
    model: 'nova-3',
    ...options,
  })) as unknown as Heard;
}

describe("Deepgram's transcription through its own client", () => {
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
    const gone = client.listen.v1.media.transcribeUrl({ url, model: 'nova-3' });
    await expect(gone).rejects.toMatchObject({ statusCode: 400, body: { err_code: 'REMOTE_CONTENT_ERROR' } });
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
  ])('rejects %s without charging', async (_, file, options, statusCode) => {
    const error = await listen(file, options).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(DeepgramError);
    expect(error.statusCode).toBe(statusCode);
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});

describe("Deepgram's speech through its own client", () => {
  const say = async (text: string, options: object = {}) =>
    client.speak.v1.audio.generate({ text, model: 'aura-2-thalia-en', ...options });

  test('is streamed in chunks and billed by the character', async () => {
    const { data, rawResponse } = await client.speak.v1.audio
      .generate({ text: 'Hello [[sandbox chunk_delay=5 chunks=3]]', model: 'aura-2-thalia-en' })
      .withRawResponse();
    let pieces = 0;
    for await (const _ of data.stream() ?? []) pieces += 1;
    expect(pieces).toBeGreaterThan(1);
    expect(rawResponse.headers.get('content-type')).toBe('audio/mpeg');
    expect(rawResponse.headers.get('dg-char-count')).toBe('40');
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
  ])('rejects %s without charging', async (_, text, options, statusCode) => {
    await expect(say(text, options)).rejects.toMatchObject({ statusCode });
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
