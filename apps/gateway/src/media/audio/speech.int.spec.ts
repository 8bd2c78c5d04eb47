import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import { formatUsd, toPicoUsd } from '#kernel';
import { extendDelay, listCharges, sampleCases, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(10.5);
});
afterAll(() => world.close());
beforeEach(() => world.bill.clear());

const DEEPGRAM = 'deepgram_aura_2';
const OPENAI = 'tts-1';

interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** The number of chunks in which the body was read. */
  readonly pieces: number;
  /** Whether the response was aborted. */
  readonly broken: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: errors
  readonly body: any;
}

async function speak(input: unknown, more: object = {}, by = account, headers = {}): Promise<Heard> {
  const response = await fetch(`${world.api}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by.apiKey}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ input, ...more }),
  });
  const taken: Uint8Array[] = [];
  let broken = false;
  try {
    for await (const piece of response.body ?? []) taken.push(piece);
  } catch {
    broken = true;
  }
  const bytes = Buffer.concat(taken);
  const isJson = response.headers.get('content-type')?.includes('json');
  const body = isJson ? JSON.parse(bytes.toString()) : undefined;
  return { status: response.status, headers: response.headers, bytes, pieces: taken.length, broken, body };
}

const factCount = async () => (await world.listEvents(account)).length;
const since = async (before: number): Promise<readonly DomainEvent[]> =>
  (await world.listEvents(account)).slice(before);
const typesSince = async (before: number) => (await since(before)).map(({ type }) => type);
const ended = (before: number) => world.waitUntil(async () => (await factCount()) > before + 1);

describe('speech', () => {
  test('is streamed as MP3 by default', async () => {
    const { status, headers, bytes, pieces } = await speak('Hello [[sandbox chunk_delay=20 chunks=4]]', {
      model: OPENAI,
    });
    expect([status, headers.get('content-type')]).toEqual([200, 'audio/mpeg']);
    expect(headers.get('x-generation-id')).toMatch(/^gen-/);
    expect(bytes.subarray(0, 2).toString('hex')).toBe('fffb');
    expect(pieces).toBeGreaterThan(1);
  });

  test('is sent before the provider has sent all of it', async () => {
    const PAUSE_MS = 150;
    const pauses = extendDelay(PAUSE_MS);
    const response = await fetch(`${world.api}/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: OPENAI, input: `[[sandbox chunk_delay=${PAUSE_MS} chunks=4]]` }),
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect((await reader.read()).value?.length).toBeGreaterThan(0);
    pauses.end();
    while (!(await reader.read()).done) {}
  });

  test.each([
    [{ model: OPENAI, voice: 'nova', response_format: 'opus', speed: 2 }, 'audio/opus', 'OggS'],
    [{ model: OPENAI, voice: { id: 'nova' }, response_format: 'wav', instructions: 'Softly.' }, 'audio/wav', 'RIFF'],
    [{ model: 'openai/tts-1-hd', response_format: 'flac' }, 'audio/flac', 'fLaC'],
    [{ model: DEEPGRAM, voice: 'aura-2-agathe-fr' }, 'audio/mpeg', ''],
    [{ model: DEEPGRAM, voice: 'Apollo', speed: 4 }, 'audio/mpeg', ''],
    [{ model: DEEPGRAM, voice: 'alloy' }, 'audio/mpeg', ''],
    [{ model: DEEPGRAM, voice: '', language: '' }, 'audio/mpeg', ''],
    [{ model: DEEPGRAM, language: 'de-CH' }, 'audio/mpeg', ''],
    [{ model: 'eleven_multilingual_v2', language: 'it', voice: 'Aria' }, 'audio/mpeg', ''],
    [{ model: 'eleven_flash_v2_5', language: 'pt-BR', response_format: 'opus' }, 'audio/ogg', 'OggS'],
    [{ model: 'eleven_v3', response_format: 'wav' }, 'audio/wav', 'RIFF'],
    [{ model: 'eleven_v3', response_format: 'flac' }, 'audio/mpeg', ''],
    [{}, 'audio/mpeg', ''],
  ])('has the requested format if the model supports it, else MP3: %j', async (more, type, start) => {
    const { status, headers, bytes } = await speak('Hello', more);
    expect([status, headers.get('content-type')]).toEqual([200, type]);
    expect(bytes.toString('latin1', 0, start.length)).toBe(start);
  });

  test('uses a voice that speaks the requested language', async () => {
    for (const [language, voice] of [
      ['fr', 'aura-2-agathe-fr'],
      ['es', 'aura-2-celeste-es'],
    ]) {
      await speak('Hello', { language });
      expect((await world.bill.fetchLines()).at(-1)?.model).toBe(voice);
    }
  });

  test.each([
    ['pt', 'eleven_multilingual_v2'],
    ['hu-HU', 'eleven_flash_v2_5'],
    ['mi', 'openai/tts-1'],
    ['fr', DEEPGRAM],
  ])('uses a model that speaks the language %s if none is requested', async (language, model) => {
    const before = await factCount();
    expect((await speak('Olá', { language })).status).toBe(200);
    expect((await since(before))[0]).toMatchObject({ type: 'FundsHeld', data: { query: { model } } });
    expect((await speak('Olá', { language, voice: 'alloy' })).status).toBe(200);
    expect((await speak('Olá', { language, voice: '' })).status).toBe(200);
  });

  test('is recorded in the history with its number of characters', async () => {
    const by = await world.createAccount(1.05);
    await speak('Grüezi 👋', {}, by);
    const [record] = (await world.get('/queries/history', by)).body.data;
    expect(record).toMatchObject({ model: DEEPGRAM, query_type: 'text_to_speech', input_count: 8, output_count: 0 });
    expect(record).toMatchObject({ input_unit: 'characters', output_unit: null });
  });
});

describe('a request for speech that is rejected before money is held', () => {
  test.each<[string, unknown, object, number, RegExp]>([
    ['without a text', undefined, {}, 400, /input must be a string/],
    ['with a blank text', '  ', {}, 400, /input must contain text/],
    ['with more than 2,000 characters for Deepgram', 'a'.repeat(2_001), {}, 400, /at most 2000 characters/],
    [
      'with more than 5,000 characters for ElevenLabs',
      'a'.repeat(5_001),
      { model: 'eleven_v3' },
      400,
      /at most 5000 characters/,
    ],
    ['with an unknown voice', 'a', { voice: 'aura-2-nobody-en' }, 400, /no voice "aura-2-nobody-en"/],
    ['with a voice of another model', 'a', { voice: 'aura-2-thalia-en', model: 'eleven_v3' }, 400, /no voice/],
    ['with a voice that is not a string', 'a', { voice: 7 }, 400, /voice must be/],
    [
      'with a voice that does not speak the language',
      'a',
      { voice: 'aura-2-thalia-en', language: 'fr' },
      422,
      /does not speak "fr"/,
    ],
    [
      'with a multilingual voice of a model that does not support the language',
      'a',
      { voice: 'Aria', model: 'eleven_v3', language: 'tlh' },
      422,
      /does not speak/,
    ],
    ['with a language that no voice speaks', 'a', { language: 'tlh' }, 400, /language must be one of en, es/],
    ['with an unknown format', 'a', { response_format: 'midi' }, 400, /response_format must be one of/],
    ['with an invalid speed', 'a', { speed: 9 }, 400, /speed must be from 0.25 to 4/],
    ['with an unknown model', 'a', { model: 'x' }, 404, /does not exist/],
    ['with a transcription model', 'a', { model: 'nova-3' }, 400, /does not support text to speech/],
    [
      'with a provider that collects data although that is denied',
      'a',
      { provider: { data_collection: 'deny' } },
      404,
      /deepgram collects data/,
    ],
  ])('is rejected %s', async (_, input, more, status, message) => {
    const before = await factCount();
    const answer = await speak(input, more);
    expect([answer.status, answer.body.status, answer.body.statusCode]).toEqual([status, 'error', status]);
    expect(answer.body.message).toMatch(message);
    expect(await factCount()).toBe(before);
  });

  test('is rejected without a key or without money', async () => {
    expect((await world.post('/v1/audio/speech', { input: 'a' })).status).toBe(401);
    const poor = await speak('a', {}, await world.createAccount());
    expect([poor.status, poor.body.error.type]).toEqual([402, 'insufficient_balance']);
    expect(await world.bill.fetchTotal()).toMatchObject({ lines: 0 });
  });
});

describe('the charge for speech', () => {
  test('is calculated by the character, like the hold and the bill of the provider', async () => {
    const before = await factCount();
    await speak('a'.repeat(1_000));
    const [held, settled] = await since(before);
    expect(held).toMatchObject({ type: 'FundsHeld', data: { amount: '31650000000' } });
    expect(settled).toMatchObject({ type: 'HoldSettled', data: { charged: '31650000000' } });
    expect(listCharges(await since(before))[0]?.items).toMatchObject([
      { usage: { character: 1_000 }, estimated: false, cost: '30000000000', vendorId: expect.any(String) },
    ]);
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.03');
  });

  test.each([
    ['deepgram_aura_2', '30000000', '31650000'],
    ['eleven_multilingual_v2', '100000000', '105500000'],
    ['eleven_flash_v2_5', '50000000', '52750000'],
    ['eleven_v3', '100000000', '105500000'],
    ['tts-1', '15000000', '15825000'],
    ['tts-1-hd', '30000000', '31650000'],
  ])('has the cost that the provider bills for %s, and a price that is 5.5% higher', async (model, cost, price) => {
    const before = await factCount();
    expect((await speak('a', { model })).status).toBe(200);
    expect(listCharges(await since(before))).toMatchObject([{ cost, price }]);
    expect((await world.bill.fetchTotal()).total_usd).toBe(formatUsd(toPicoUsd(BigInt(cost))));
  });

  const FAULTS: readonly (readonly [string, number, readonly string[]])[] = [
    ['400', 400, ['FundsHeld', 'HoldReleased']],
    ['429', 429, ['FundsHeld', 'HoldReleased']],
    ['500', 502, ['FundsHeld', 'HoldReleased']],
    ['refuse', 503, ['FundsHeld', 'HoldReleased', 'ChargeAbsorbed']],
    ['lost', 503, ['FundsHeld', 'HoldReleased', 'ChargeAbsorbed']],
  ];
  test.each(FAULTS)('is not made if the provider fails with %s before any audio', async (fault, status, facts) => {
    const index = FAULTS.findIndex(([other]) => other === fault);
    for (const model of sampleCases([OPENAI, DEEPGRAM, 'eleven_v3'], 1, index)) {
      const before = await factCount();
      const answer = await speak(`[[sandbox fault=${fault}]]`, { model });
      expect([model, answer.status, answer.body.statusCode]).toEqual([model, status, status]);
      expect(await typesSince(before)).toEqual(facts);
    }
  });

  test('is not made if the provider interrupts the audio: the operator absorbs the cost, and the response is aborted', async () => {
    const before = await factCount();
    const { status, broken, bytes } = await speak('[[sandbox fault=cut]]', { model: OPENAI });
    expect([status, broken]).toEqual([200, true]);
    expect(bytes.length).toBeGreaterThan(0);
    await ended(before);
    const facts = await since(before);
    expect(facts.map(({ type }) => type)).toEqual(['FundsHeld', 'HoldReleased', 'ChargeAbsorbed']);
    expect(listCharges(facts)[0]).toMatchObject({ cost: '315000000', errorCode: 'upstream_error' });
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.000315');
  });

  test('is made in full if the client disconnects, because the provider bills the complete speech', async () => {
    const before = await factCount();
    const leaving = new AbortController();
    const response = await fetch(`${world.api}/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: OPENAI, input: '[[sandbox chunk_delay=30 chunks=6]] and on, and on' }),
      signal: leaving.signal,
    });
    await (response.body as ReadableStream<Uint8Array>).getReader().read();
    leaving.abort();
    await ended(before);
    expect(await typesSince(before)).toEqual(['FundsHeld', 'HoldSettled']);
    const [charge] = listCharges(await since(before));
    expect(charge?.items[0]?.usage).toEqual({ character: 50 });
  });

  test('is made if the client disconnects before the first audio, because the provider was already called', async () => {
    const before = await factCount();
    const leaving = new AbortController();
    const input = '[[sandbox latency=150]]';
    const asked = fetch(`${world.api}/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: OPENAI, input }),
      signal: leaving.signal,
    });
    await world.waitUntil(async () => (await factCount()) > before);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await ended(before);
    expect(await typesSince(before)).toEqual(['FundsHeld', 'HoldSettled']);
  });

  test('is made once per Idempotency-Key; a repeated request returns the same audio', async () => {
    const before = await factCount();
    const key = { 'idempotency-key': 'speech-1' };
    const first = await speak('Hello', {}, account, key);
    const again = await speak('Hello', {}, account, key);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect([again.bytes.equals(first.bytes), again.headers.get('content-type')]).toEqual([true, 'audio/mpeg']);
    expect(await typesSince(before)).toEqual(['FundsHeld', 'HoldSettled']);
  });
});

describe('the lists of audio models and voices', () => {
  test('have the charged prices and the prices at the provider', async () => {
    const { data } = (await world.get('/v1/audio/models')).body;
    expect(data.find(({ id }: { id: string }) => id === 'nova-3')).toMatchObject({
      type: 'stt',
      provider: 'deepgram',
      unit: 'minute',
      base_price: 0.0043,
      api_price: 0.0045365,
      variants: [{ language: 'multi', api_price: 0.005486 }],
      languages: expect.arrayContaining(['en', 'multi']),
    });
    expect(data.find(({ id }: { id: string }) => id === DEEPGRAM)).toMatchObject({
      type: 'tts',
      unit: '1k_characters',
      api_price: 0.03165,
      max_characters: 2_000,
      languages: ['en', 'es', 'fr', 'de', 'it', 'nl', 'ja'],
    });
    for (const at of ['/audio/models', '/api/v1/audio/models']) expect((await world.get(at)).body.data).toEqual(data);
  });

  test('have the voices of all providers, or those that speak a language, including multilingual voices', async () => {
    const of = async (query = '') => (await world.get(`/v1/audio/voices${query}`)).body.data;
    const all = await of();
    expect(new Set(all.map(({ provider }: { provider: string }) => provider))).toEqual(
      new Set(['deepgram', 'elevenlabs', 'openai']),
    );
    expect(all.find(({ id }: { id: string }) => id === 'aura-2-thalia-en')).toEqual({
      id: 'aura-2-thalia-en',
      name: 'Thalia',
      provider: 'deepgram',
      model_id: DEEPGRAM,
      language: 'en',
      gender: 'feminine',
      description: 'A feminine voice that speaks English.',
    });
    const french: readonly { language: string }[] = await of('?language=fr');
    expect(new Set(french.map(({ language }) => language))).toEqual(new Set(['fr', 'multi']));
    expect(await of('?language=FR-ca')).toEqual(french);
    expect(await of('?language=zz')).toEqual(all.filter(({ language }: { language: string }) => language === 'multi'));
    expect(await of('?language=')).toEqual(all);
  });
});
