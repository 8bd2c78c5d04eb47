import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { soundFile } from '#testing';
import { startSandbox } from '../sandbox.ts';
import { millisecondsOf } from './length/recording.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const content = body instanceof Buffer ? new Uint8Array(body) : JSON.stringify(body);
  const answer = await fetch(`${sandbox.url}${path}`, { method: 'POST', headers, body: content });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const json = answer.headers.get('content-type') === 'application/json' ? JSON.parse(bytes.toString()) : undefined;
  return { status: answer.status, headers: answer.headers, bytes, json };
}

describe('speech', () => {
  const VOICE = '/elevenlabs/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM';

  test('of ElevenLabs is an MP3, billed by character', async () => {
    const text = 'Grüezi 👋';
    const { status, headers, bytes } = await post(
      VOICE,
      { text, model_id: 'eleven_flash_v2_5' },
      { 'xi-api-key': 'k' },
    );
    expect([status, headers.get('content-type'), headers.get('character-cost')]).toEqual([200, 'audio/mpeg', '8']);
    expect(millisecondsOf(bytes)).toBeGreaterThan(0);
    expect(await bill()).toEqual({ total_usd: '0.0004', lines: 1 });
  });

  test('of Deepgram is an MP3, billed by character', async () => {
    const path = '/deepgram/v1/speak?model=aura-2-thalia-en';
    const { status, headers } = await post(path, { text: 'Hello' }, { authorization: 'Token k' });
    expect([status, headers.get('content-type'), headers.get('dg-char-count')]).toEqual([200, 'audio/mpeg', '5']);
    expect(await bill()).toEqual({ total_usd: '0.00015', lines: 1 });
  });

  test('is transcribed as directed, with the time of every word, and billed by its length', async () => {
    const sound = soundFile('wav', { seconds: 2, note: '[[sandbox text="Two words"]]' });
    const path = '/deepgram/v1/listen?model=nova-3';
    const { status, json } = await post(path, sound, { authorization: 'Token k', 'content-type': 'audio/mpeg' });
    expect(status).toBe(200);
    expect(json.metadata).toMatchObject({ duration: 2, channels: 1 });
    const [alternative] = json.results.channels[0].alternatives;
    expect(alternative.transcript).toBe('Two words');
    expect(alternative.words).toEqual([
      { word: 'two', start: 0, end: 1, confidence: 0.99, punctuated_word: 'Two' },
      { word: 'words', start: 1, end: 2, confidence: 0.99, punctuated_word: 'words' },
    ]);
    expect(await bill()).toEqual({ total_usd: '0.000143333334', lines: 1 }); // 2 s at 0.0043 USD a minute, rounded up
  });

  test.each<[string, string, unknown, Record<string, string>, number]>([
    ['without a key of ElevenLabs', VOICE, { text: 'a' }, {}, 401],
    ['of a voice that is none', '/elevenlabs/v1/text-to-speech/x', { text: 'a' }, { 'xi-api-key': 'k' }, 404],
    ['of a model that is none', VOICE, { text: 'a', model_id: 'eleven_v9' }, { 'xi-api-key': 'k' }, 400],
    ['of too long a text', VOICE, { text: 'a'.repeat(5_001), model_id: 'eleven_v3' }, { 'xi-api-key': 'k' }, 400],
    ['of no text', VOICE, { text: '' }, { 'xi-api-key': 'k' }, 422],
    ['without a key of Deepgram', '/deepgram/v1/speak', { text: 'a' }, {}, 401],
    [
      'of too long a text for Deepgram',
      '/deepgram/v1/speak',
      { text: 'a'.repeat(2_001) },
      { authorization: 'Token k' },
      413,
    ],
    [
      'of a voice that Deepgram has not',
      '/deepgram/v1/speak?model=x',
      { text: 'a' },
      { authorization: 'Token k' },
      400,
    ],
    [
      'from a model that is none',
      '/deepgram/v1/listen?model=nova-9',
      Buffer.from('ID3'),
      { authorization: 'Token k' },
      400,
    ],
    [
      'from what is no sound',
      '/deepgram/v1/listen?model=nova-3',
      Buffer.from('text'),
      { authorization: 'Token k' },
      400,
    ],
  ])('%s is refused and costs nothing', async (_, path, body, headers, status) => {
    const answer = await post(path, body, headers);
    expect(answer.status).toBe(status);
    expect(answer.json).toBeDefined();
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});

test("OpenAI's list of models has those that do not chat", async () => {
  const client = new OpenAI({ apiKey: 'k', baseURL: `${sandbox.url}/openai/v1` });
  const ids = (await client.models.list()).data.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(['gpt-5-mini', 'text-embedding-3-small', 'gpt-image-1.5']));
  expect(await client.models.retrieve('text-embedding-3-large')).toMatchObject({ object: 'model' });
});
