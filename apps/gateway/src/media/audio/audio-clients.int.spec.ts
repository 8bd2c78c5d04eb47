/** Unmodified clients, as users install them. */
import { createOpenAI } from '@ai-sdk/openai';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { experimental_generateSpeech as generateSpeech, experimental_transcribe as transcribe } from 'ai';
import OpenAI, { toFile } from 'openai';
import { createAudioFile, TestWorld } from '#testing';

let world: TestWorld;
let client: OpenAI;
let atSound: OpenAI;
let ai: ReturnType<typeof createOpenAI>;
beforeAll(async () => {
  world = await TestWorld.open();
  const { apiKey } = await world.createAccount(10.5);
  client = new OpenAI({ apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
  atSound = new OpenAI({ apiKey, baseURL: `${world.api}/api/v1`, maxRetries: 0 });
  ai = createOpenAI({ apiKey, baseURL: `${world.api}/v1` });
});
afterAll(() => world.close());

const sound = createAudioFile('webm', { seconds: 3, directive: '[[sandbox text="One, two. Three?"]]' });
const file = () => toFile(sound, 'recording.webm');

describe("OpenAI's client", () => {
  test.each(['nova-3', 'whisper-1'])('transcribes in all formats with %s, at both base URLs', async (model) => {
    for (const by of [client, atSound]) {
      const as = async <F extends 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json'>(response_format: F) =>
        by.audio.transcriptions.create({ model, file: await file(), response_format });
      expect((await as('json')).text).toBe('One, two. Three?');
      expect(await as('text')).toBe('One, two. Three?\n');
      expect(await as('srt')).toMatch(/^1\n00:00:00,000 --> 00:00:0\d,\d{3}\nOne, two\.\n\n2\n/);
      expect(await as('vtt')).toMatch(/^WEBVTT\n\n00:00:00\.000 --> /);
      const verbose = (await as('verbose_json')) as OpenAI.Audio.TranscriptionVerbose;
      expect(verbose.segments?.map(({ text }) => text)).toEqual(['One, two.', 'Three?']);
      expect(verbose.duration).toBeCloseTo(3, 1);
    }
  });

  test('receives the words of a verbose transcription', async () => {
    const { words } = await client.audio.transcriptions.create({
      model: 'nova-3',
      file: await file(),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
      language: 'en',
    });
    expect(words).toHaveLength(3);
  });

  test('reads MP3 speech from the stream of the response', async () => {
    for (const by of [client, atSound])
      for (const model of ['tts-1', 'deepgram_aura_2']) {
        const input = 'Hello [[sandbox chunk_delay=5 chunks=3]]';
        const answer = await by.audio.speech.create({ model, voice: 'alloy', input });
        const pieces: Uint8Array[] = [];
        for await (const piece of answer.body ?? []) pieces.push(piece);
        expect(Buffer.concat(pieces).subarray(0, 2).toString('hex')).toBe('fffb');
      }
  });

  test('throws the errors of the API', async () => {
    const wrong = client.audio.speech.create({
      model: 'deepgram_aura_2',
      voice: 'aura-2-thalia-en',
      input: 'a',
      language: 'fr',
    } as never);
    await expect(wrong).rejects.toMatchObject({ status: 422, param: 'voice' });
    const unheard = client.audio.transcriptions.create({
      model: 'nova-3',
      file: await toFile(Buffer.from('no'), 'a.mp3'),
    });
    await expect(unheard).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  });
});

describe("Vercel's AI SDK", () => {
  test.each(['nova-3', 'whisper-1'])('transcribes with %s', async (model) => {
    const heard = await transcribe({ model: ai.transcription(model), audio: sound });
    expect(heard).toMatchObject({ text: 'One, two. Three?', segments: expect.any(Array) });
    expect(heard.durationInSeconds).toBeGreaterThanOrEqual(3);
  });

  test.each(['tts-1', 'deepgram_aura_2'])(
    'generates speech with %s in the default voice of the client',
    async (model) => {
      const { audio } = await generateSpeech({ model: ai.speech(model), text: 'Hello' });
      expect([audio.mediaType, audio.uint8Array.length > 1_000]).toEqual(['audio/mpeg', true]);
    },
  );
});
