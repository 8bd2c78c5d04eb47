import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { AUDIO_FORMATS, type AudioFormat, createAudioFile } from '#testing';
import { measureAudio } from '../../media/duration/recording.ts';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: OpenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new OpenAI({ apiKey: 'k', baseURL: `${sandbox.url}/openai/v1`, maxRetries: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const say = (input: string, more: object = {}) =>
  client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input, ...more });

describe("OpenAI's speech", () => {
  test('is streamed in chunks and billed by the character', async () => {
    const answer = await say('Grüezi [[sandbox chunk_delay=5 chunks=4]]');
    const pieces: Uint8Array[] = [];
    for await (const piece of answer.body ?? []) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(1);
    expect(answer.headers.get('content-type')).toBe('audio/mpeg');
    expect(measureAudio(Buffer.concat(pieces))?.seconds).toBeCloseTo(41 / 15, 1);
    expect(await bill()).toEqual({ total_usd: '0.000615', lines: 1 });
  });

  test.each([
    ['opus', 'audio/opus', 'OggS'],
    ['aac', 'audio/aac', '\xff\xf1'],
    ['flac', 'audio/flac', 'fLaC'],
    ['wav', 'audio/wav', 'RIFF'],
    ['pcm', 'audio/pcm', ''],
  ])('has the requested format: %s', async (response_format, type, start) => {
    const answer = await say('Hello', { response_format });
    expect(answer.headers.get('content-type')).toBe(type);
    expect(Buffer.from(await answer.arrayBuffer()).toString('latin1', 0, start.length)).toBe(start);
  });

  test.each([
    ['an unknown voice', { voice: 'x' }, 400],
    ['an unknown format', { response_format: 'ogg' }, 400],
    ['an unknown model', { model: 'tts-9' }, 404],
    ['a text that is too long', { input: 'a'.repeat(4_097) }, 400],
    ['forbidden content', { input: '[[sandbox fault=policy]]' }, 400],
  ])('rejects %s without charging', async (_, more, status) => {
    await expect(say('Hello', more)).rejects.toMatchObject({ status });
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('is billed even if it is interrupted, stalled or lost', async () => {
    await expect((await say('[[sandbox fault=cut]]')).arrayBuffer()).rejects.toThrow('terminated');
    const leaving = new AbortController();
    const stalled = await client.audio.speech.create(
      { model: 'tts-1', voice: 'alloy', input: '[[sandbox fault=stalled]]' },
      { signal: leaving.signal },
    );
    setTimeout(() => leaving.abort(), 100);
    await expect(stalled.arrayBuffer()).rejects.toThrow('aborted');
    await expect(say('[[sandbox fault=lost]]')).rejects.toBeInstanceOf(OpenAI.APIConnectionError);
    expect(await bill()).toMatchObject({ lines: 3 });
  });
});

describe("OpenAI's transcriptions", () => {
  const file = (format: AudioFormat, seconds = 2, note = '[[sandbox text="One, two. Three?"]]', claims = 1) =>
    toFile(createAudioFile(format, { seconds, directive: note, claims }), `a.${format}`);

  test('return words and segments, and are billed by full seconds', async () => {
    const heard = await client.audio.transcriptions.create({
      model: 'whisper-1',
      file: await file('wav', 1.5),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
      language: 'de',
    });
    expect(heard).toMatchObject({ text: 'One, two. Three?', language: 'german', duration: 1.5 });
    expect(heard.segments).toMatchObject([
      { text: ' One, two.', start: 0, end: 1 },
      { text: ' Three?', start: 1, end: 1.5 },
    ]);
    expect(heard.words).toMatchObject([{ word: 'one' }, { word: 'two', end: 1 }, { word: 'three' }]);
    expect(heard).toMatchObject({ usage: { type: 'duration', seconds: 2 } });
    expect(await bill()).toEqual({ total_usd: '0.0002', lines: 1 });
  });

  test('are available as text and as subtitles', async () => {
    const as = async (response_format: 'text' | 'srt' | 'vtt') =>
      client.audio.transcriptions.create({ model: 'whisper-1', file: await file('mp3', 3), response_format });
    expect(await as('text')).toBe('One, two. Three?\n');
    const times = ['00:00:00,000 --> 00:00:02,00', '00:00:02,00'] as const;
    const srt = String(await as('srt'));
    expect(srt.startsWith(`1\n${times[0]}`)).toBe(true);
    expect(srt).toContain(`\nOne, two.\n\n2\n${times[1]}`);
    expect(String(await as('vtt')).startsWith('WEBVTT\n\n00:00:00.000 --> 00:00:02.00')).toBe(true);
  });

  test.each(AUDIO_FORMATS)('of %s are billed by the actual length, even if the file suggests less', async (format) => {
    await client.audio.transcriptions.create({ model: 'whisper-1', file: await file(format, 19.5, '', 0.1) });
    expect(await bill()).toEqual({ total_usd: '0.002', lines: 1 });
  });

  test.each([
    ['a file with an unsupported extension', () => toFile(createAudioFile('mp3', { seconds: 1 }), 'a.txt'), {}],
    ['data that is not audio', () => toFile(Buffer.from('no sound'), 'a.mp3'), {}],
    ['a recording that is too short', () => file('wav', 0.05, ''), {}],
    ['a language that is not an ISO 639-1 code', () => file('mp3'), { language: 'multi' }],
    ['forbidden content', () => file('mp3', 1, '[[sandbox fault=policy]]'), {}],
  ])('reject %s without charging', async (_, of, more) => {
    const refused = client.audio.transcriptions.create({ model: 'whisper-1', file: await of(), ...more });
    await expect(refused).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});
