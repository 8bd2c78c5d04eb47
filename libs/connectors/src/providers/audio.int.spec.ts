/** Requests to audio providers and the results of their responses. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { SpeechCall, TranscriptionCall } from '#application';
import { respondWithJson, StubServer } from '../../../testing/src/servers/stub-server.ts';
import { ProviderHttp } from '../http/provider-http.ts';
import { createDeepgramProvider } from './deepgram/index.ts';
import { createElevenLabsProvider } from './elevenlabs/index.ts';
import { createOpenAiProvider } from './openai/index.ts';

const server = new StubServer();
let http: ProviderHttp;
let directory: string;
let file: TranscriptionCall['file'];
beforeAll(async () => {
  http = new ProviderHttp(await server.listen(), { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 }, 'k');
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-sound-'));
  file = { path: path.join(directory, 'upload'), size: 11, mediaType: 'audio/mpeg', name: 'recording.mp3' };
  await writeFile(file.path, 'all of it! ');
});
afterAll(async () => {
  await http.close();
  await server.close();
  await rm(directory, { recursive: true });
});
beforeEach(() => void server.requests.splice(0));

const at = () => ({ http, credential: 'secret' });
const vendors = {
  deepgram: () => createDeepgramProvider(at()),
  elevenlabs: () => createElevenLabsProvider(at()),
  openai: () => createOpenAiProvider(at(), {}),
};
const { signal } = new AbortController();

const speak = (vendor: keyof typeof vendors, more: Partial<SpeechCall> = {}) =>
  vendors[vendor]().speech({ model: 'm', input: 'Hello', voice: 'v', parameters: {}, signal, ...more });
const listen = (vendor: 'deepgram' | 'openai', more: Partial<TranscriptionCall> = {}) =>
  vendors[vendor]().transcription({ model: 'm', file, parameters: {}, signal, ...more });

const sound = (headers: Readonly<Record<string, string>> = {}, ...pieces: readonly string[]) => {
  server.handler = (response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg', ...headers });
    for (const piece of pieces) response.write(piece);
    response.end();
  };
};
const asked = () => {
  const { line = '', body = '', headers = {} } = server.requests[0] ?? {};
  const url = new URL(line.split(' ')[1] ?? '/', 'http://vendor');
  return { path: url.pathname, query: Object.fromEntries(url.searchParams), body, headers };
};

describe('Deepgram', () => {
  const HEARD = {
    metadata: { request_id: 'dg-1', duration: 2.0001, channels: 1 },
    results: {
      channels: [
        {
          detected_language: 'de',
          alternatives: [
            {
              transcript: 'Ja, nein.',
              words: [
                { word: 'ja', punctuated_word: 'Ja,', start: 0, end: 0.5 },
                { word: 'nein', start: 0.5, end: 1 },
                { word: 'x', start: -1, end: 'soon' },
                null,
              ],
            },
          ],
        },
      ],
    },
  };

  test('receives the unchanged file, and fixed values of the options that affect the price', async () => {
    server.handler = respondWithJson(HEARD);
    await listen('deepgram', { model: 'nova-3', parameters: { language: 'multi' } });
    const { path, query, body, headers } = asked();
    expect([path, body]).toEqual(['/v1/listen', 'all of it! ']);
    expect(headers).toMatchObject({
      authorization: 'Token secret',
      'content-type': 'audio/mpeg',
      'content-length': '11',
    });
    expect(query).toEqual({
      model: 'nova-3',
      language: 'multi',
      smart_format: 'true',
      multichannel: 'false',
      diarize: 'false',
      mip_opt_out: 'false',
    });
  });

  test('has its request id ignored if it is too long for an event', async () => {
    const { request_id: _, ...metadata } = HEARD.metadata;
    server.handler = respondWithJson({ ...HEARD, metadata: { ...metadata, request_id: 'x'.repeat(2_000_000) } });
    expect(await listen('deepgram')).toMatchObject({ vendorId: undefined });
  });

  test('returns the transcript, and the billed duration rounded up to a millisecond', async () => {
    server.handler = respondWithJson(HEARD);
    expect(await listen('deepgram')).toEqual({
      text: 'Ja, nein.',
      language: 'de',
      segments: [],
      words: [
        { word: 'Ja,', start: 0, end: 0.5 },
        { word: 'nein', start: 0.5, end: 1 },
      ],
      seconds: 2.0001,
      milliseconds: 2_001,
      vendorId: 'dg-1',
    });
  });

  test.each<[string, unknown]>([
    ['an empty object', {}],
    ['no channel', { metadata: { duration: 1 }, results: { channels: [] } }],
    ['no text', { results: { channels: [{ alternatives: [{ transcript: 7 }] }] } }],
    ['a list', []],
    ['invalid JSON', '<html>'],
  ])('may invoice a response with %s, and is not called again', async (_, answer) => {
    server.handler = respondWithJson(answer);
    await expect(listen('deepgram')).rejects.toMatchObject({ code: 'upstream_error', deliveredText: '' });
    expect(server.requests).toHaveLength(1);
  });

  test.each([-1, Number.NaN, '3', null, 1e300])('has no billed duration if it reports %s', async (duration) => {
    server.handler = respondWithJson({ ...HEARD, metadata: { duration } });
    expect((await listen('deepgram')).milliseconds).toBeUndefined();
  });

  test.each<[object | string, number, string, string]>([
    [{ err_code: 'Bad Request', err_msg: 'corrupt data', request_id: 'r' }, 400, 'invalid_request', 'corrupt data'],
    [
      { category: 'INVALID_JSON', message: 'Invalid.', details: 'expected value' },
      400,
      'invalid_request',
      'expected value',
    ],
    ['Too long a text', 413, 'invalid_request', 'Too long a text'],
    ['<html><body>no</body></html>', 400, 'invalid_request', 'The provider rejected the request'],
    ['Unsupported', 415, 'invalid_request', 'Unsupported'],
    [
      { err_code: 'INSUFFICIENT_PERMISSIONS', err_msg: 'secret' },
      403,
      'upstream_unavailable',
      'The provider is currently unavailable',
    ],
    [
      { err_code: 'ASR_PAYMENT_REQUIRED', err_msg: 'secret' },
      402,
      'upstream_unavailable',
      'The provider is currently unavailable',
    ],
    [{ err_code: 'TOO_MANY_REQUESTS' }, 429, 'rate_limited', 'The provider is limiting requests; retry later'],
    ['Service Unavailable', 503, 'upstream_unavailable', 'The provider is currently unavailable'],
    ['', 504, 'timeout', 'The provider took too long to respond'],
  ])(
    'has its message in %j (%i) forwarded only if the message concerns the request',
    async (body, status, code, message) => {
      server.handler = (response) => {
        response.writeHead(status, { 'dg-request-id': 'dg-2', 'retry-after': '7' });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      };
      const failure = { code, status, publicMessage: message, vendorId: 'dg-2' };
      await expect(listen('deepgram')).rejects.toMatchObject(failure);
      await expect(speak('deepgram')).rejects.toMatchObject(failure);
    },
  );

  test('generates speech with the voice as its model, in the requested format', async () => {
    sound({ 'dg-char-count': '5', 'dg-request-id': 'dg-3' }, 'a', 'b');
    const voice = 'aura-2-thalia-en';
    const { bytes, ...speech } = await speak('deepgram', { voice, parameters: { response_format: 'wav', speed: 4 } });
    expect(speech).toEqual({ mediaType: 'audio/mpeg', characters: 5, vendorId: 'dg-3' });
    expect(await text(bytes)).toBe('ab');
    const { path, query, body } = asked();
    expect([path, JSON.parse(body)]).toEqual(['/v1/speak', { text: 'Hello' }]);
    expect(query).toEqual({
      model: voice,
      encoding: 'linear16',
      container: 'wav',
      sample_rate: '24000',
      mip_opt_out: 'false',
      speed: '1.5',
    });
  });

  test('receives no speed for voices that do not support one', async () => {
    sound();
    await speak('deepgram', { voice: 'aura-2-agathe-fr', parameters: { response_format: 'midi', speed: 2 } });
    expect(asked().query).toEqual({ model: 'aura-2-agathe-fr', encoding: 'mp3', mip_opt_out: 'false' });
  });
});

describe('ElevenLabs', () => {
  test('streams, and receives the language if its model supports one', async () => {
    sound({ 'request-id': 'el-1', 'x-character-count': '5', 'character-cost': '3' });
    const parameters = { language: 'fr', speed: 3, response_format: 'opus' };
    const speech = await speak('elevenlabs', { model: 'eleven_flash_v2_5', voice: 'a/b', parameters });
    expect(speech).toMatchObject({ characters: 5, vendorId: 'el-1' });
    const { path, query, body, headers } = asked();
    expect([path, query]).toEqual(['/v1/text-to-speech/a%2Fb/stream', { output_format: 'opus_48000_128' }]);
    expect(headers['xi-api-key']).toBe('secret');
    expect(JSON.parse(body)).toEqual({
      text: 'Hello',
      model_id: 'eleven_flash_v2_5',
      language_code: 'fr',
      voice_settings: { speed: 1.2 },
    });
  });

  test('receives no language for a model that rejects one, and does not stream WAV', async () => {
    sound();
    const parameters = { language: 'fr', response_format: 'wav' };
    const { characters } = await speak('elevenlabs', { model: 'eleven_multilingual_v2', parameters });
    expect(characters).toBeUndefined();
    expect([asked().path, asked().query]).toEqual(['/v1/text-to-speech/v', { output_format: 'wav_24000' }]);
    expect(JSON.parse(asked().body)).toEqual({ text: 'Hello', model_id: 'eleven_multilingual_v2' });
  });

  test.each<[unknown, number, string, string]>([
    [{ detail: { status: 'max_character_limit_exceeded', message: 'Too long.' } }, 400, 'invalid_request', 'Too long.'],
    [{ detail: [{ loc: ['body', 'text'], msg: 'Field required' }] }, 422, 'invalid_request', 'Field required'],
    [{ detail: 'Plain words' }, 400, 'invalid_request', 'Plain words'],
    [{ detail: [] }, 422, 'invalid_request', 'The provider rejected the request'],
    [
      { detail: { status: 'quota_exceeded', message: 'secret' } },
      401,
      'upstream_unavailable',
      'The provider is currently unavailable',
    ],
    [
      { detail: { status: 'too_many_concurrent_requests' } },
      429,
      'rate_limited',
      'The provider is limiting requests; retry later',
    ],
  ])(
    'has its message in %j (%i) forwarded only if the message concerns the request',
    async (body, status, code, message) => {
      server.handler = respondWithJson(body, status);
      await expect(speak('elevenlabs')).rejects.toMatchObject({ code, status, publicMessage: message });
    },
  );
});

describe('OpenAI', () => {
  test('receives a form with the original file name', async () => {
    const words = [{ word: 'One', start: 0, end: 1 }];
    const segments = [{ text: ' One', start: 0, end: 1 }];
    server.handler = respondWithJson({
      text: 'One',
      language: 'english',
      duration: 1.5,
      usage: { seconds: 2 },
      words,
      segments,
    });
    const heard = await listen('openai', { model: 'whisper-1', parameters: { language: 'multi', prompt: 'Coins' } });
    expect(heard).toMatchObject({ text: 'One', seconds: 1.5, milliseconds: 2_000, words, segments: [{ text: 'One' }] });
    const { path, body } = asked();
    expect(path).toBe('/audio/transcriptions');
    expect(body).toContain('name="file"; filename="recording.mp3"');
    for (const told of ['all of it! ', 'whisper-1', 'verbose_json', 'Coins', 'segment', 'word'])
      expect(body).toContain(told);
    expect(body).not.toContain('name="language"');
  });

  test('bills the duration rounded up to seconds if it reports no billed seconds', async () => {
    server.handler = respondWithJson({ text: 'One', duration: 1.2 });
    expect(await listen('openai')).toMatchObject({ milliseconds: 2_000, words: [], segments: [] });
    server.handler = respondWithJson({ text: 'One' });
    expect((await listen('openai')).milliseconds).toBeUndefined();
  });

  test('receives defaults for the speech parameters that a request omits', async () => {
    sound({ 'x-request-id': 'req_1' }, 'a');
    expect(await speak('openai', { model: 'tts-1', voice: 'nova' })).toMatchObject({ vendorId: 'req_1' });
    expect(JSON.parse(asked().body)).toEqual({
      model: 'tts-1',
      input: 'Hello',
      voice: 'nova',
      response_format: 'mp3',
      speed: 1,
    });
  });
});

test.each(['deepgram', 'elevenlabs', 'openai'] as const)(
  'a speech response of %s that is not audio fails as a call that may be invoiced',
  async (vendor) => {
    server.handler = respondWithJson({ oops: true });
    await expect(speak(vendor)).rejects.toMatchObject({ code: 'upstream_error', deliveredText: '' });
  },
);
