import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import {
  AUDIO_FORMATS,
  type AudioFormat,
  createAudioFile,
  formatTotalCost,
  listCharges,
  type TestAccount,
  TestWorld,
} from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(10.5);
});
afterAll(() => world.close());
beforeEach(() => world.bill.clear());

interface Sound {
  readonly format?: AudioFormat;
  readonly seconds?: number;
  readonly claims?: number;
  readonly note?: string;
  readonly bytes?: Buffer;
}

function fileOf({ format = 'mp3', seconds = 2, claims = 1, note = '', bytes }: Sound): File {
  return new File(
    [new Uint8Array(bytes ?? createAudioFile(format, { seconds, claims, directive: note }))],
    'anything.bin',
  );
}

function transcribe(sound: Sound, fields: Readonly<Record<string, string>> = {}, by = account, headers = {}) {
  const body = new FormData();
  body.set('file', fileOf(sound));
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  const authorization = `Bearer ${by.apiKey}`;
  return world.send('POST', '/v1/audio/transcriptions', { body, headers: { authorization, ...headers } });
}

/** Returns the events of the account after the first `before` events. */
async function since(before: number): Promise<readonly DomainEvent[]> {
  return (await world.listEvents(account)).slice(before);
}

const factCount = async () => (await world.listEvents(account)).length;

describe('a transcription', () => {
  const note = '[[sandbox text="One, two. Three?"]]';

  test.each<[string, string, unknown]>([
    [
      'json',
      'application/json',
      { text: 'One, two. Three?', usage: { type: 'duration', seconds: 4, cost: expect.any(Number) } },
    ],
    [
      'verbose_json',
      'application/json',
      {
        task: 'transcribe',
        language: 'en',
        duration: expect.closeTo(3, 1),
        text: 'One, two. Three?',
        segments: [
          expect.objectContaining({ id: 0, text: 'One, two.' }),
          expect.objectContaining({ id: 1, text: 'Three?' }),
        ],
        words: [{ word: 'One,', start: 0, end: expect.any(Number) }, expect.anything(), expect.anything()],
        usage: { type: 'duration', seconds: 4, cost: expect.any(Number) },
      },
    ],
  ])('is returned as %s', async (response_format, type, body) => {
    const answer = await transcribe({ seconds: 3, note }, { response_format });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`]);
    expect(answer.headers.get('x-generation-id')).toMatch(/^gen-/);
    expect(answer.body).toEqual(body);
  });

  test.each([
    ['text', 'text/plain', /^One, two\. Three\?\n$/],
    ['srt', 'application/x-subrip', /^1\n00:00:00,000 --> 00:00:0[12],\d{3}\nOne, two\.\n\n2\n/],
    ['vtt', 'text/vtt', /^WEBVTT\n\n00:00:00\.000 --> 00:00:0[12]\.\d{3}\nOne, two\.\n\n/],
  ])('is returned as %s', async (response_format, type, text) => {
    const answer = await transcribe({ seconds: 3, note }, { response_format });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`]);
    expect(answer.text).toMatch(text);
  });

  test('is served at all paths, with models of every provider', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}` };
    for (const at of ['/audio', '/api/v1/audio']) {
      const body = new FormData();
      body.set('file', fileOf({}));
      expect((await world.send('POST', `${at}/transcriptions`, { body, headers })).status).toBe(200);
    }
    for (const model of ['nova-2', 'whisper-1', 'openai/whisper-1'])
      expect((await transcribe({}, { model })).body).toMatchObject({ text: expect.any(String) });
  });

  test('is recorded in the history with its duration, rounded up to seconds', async () => {
    const by = await world.createAccount(1.05);
    await transcribe({ seconds: 7.5 }, {}, by);
    const [record] = (await world.get('/queries/history', by)).body.data;
    expect(record).toMatchObject({ model: 'nova-3', query_type: 'speech_to_text', input_count: 8, output_count: 0 });
    expect(record).toMatchObject({ input_unit: 'seconds', output_unit: null });
  });
});

describe('the charge for a transcription', () => {
  const perSecond = (4_536_500_000n * 1_000n) / 60_000n;

  test.each(AUDIO_FORMATS)(
    'is held for the full duration of %s audio that claims a tenth; cost and bill are equal to 8 decimals',
    async (format) => {
      const before = await factCount();
      expect((await transcribe({ format, seconds: 10, claims: 0.1 })).status).toBe(200);
      const [held, settled] = await since(before);
      expect(held).toMatchObject({ type: 'FundsHeld', data: { query: { type: 'speech_to_text' } } });
      const amount = BigInt((held as { data: { amount: string } }).data.amount);
      expect(amount).toBeGreaterThanOrEqual(perSecond * 10n);
      expect(amount).toBeLessThanOrEqual(perSecond * 12n);
      expect(settled?.type).toBe('HoldSettled');
      const { charged, charge } = (settled as Extract<DomainEvent, { type: 'HoldSettled' }>).data;
      expect(charged).toBe(charge.price);
      expect(charge.items).toMatchObject([
        { of: 'nova-3', estimated: false, terms: { language: 'en' }, vendorId: expect.any(String) },
      ]);
      expect(formatTotalCost([charge]).slice(0, 10)).toBe((await world.bill.fetchTotal()).total_usd.slice(0, 10));
    },
  );

  test('is for full seconds with a model that is billed by full seconds', async () => {
    const before = await factCount();
    await transcribe({ seconds: 19.5, claims: 0.1 }, { model: 'whisper-1' });
    const [charge] = listCharges(await since(before));
    expect(charge).toMatchObject({ cost: '2000000000', items: [{ usage: { audioMillisecond: 20_000 } }] });
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.002');
  });

  test('can be calculated for a request with an empty language', async () => {
    expect((await transcribe({ seconds: 1 }, { language: '' })).status).toBe(200);
  });

  test('is higher for several languages, and records the language', async () => {
    const before = await factCount();
    expect((await transcribe({ seconds: 60, format: 'wav' }, { language: 'multi' })).status).toBe(200);
    const [charge] = listCharges(await since(before));
    expect(charge).toMatchObject({ cost: '5200000000', items: [{ terms: { language: 'multi' } }] });
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.0052');
  });

  test('is for full seconds if the provider reports only the duration', async () => {
    const before = await factCount();
    const answer = await transcribe(
      { seconds: 12.5, format: 'wav', note: '[[sandbox fault=no_usage]]' },
      { model: 'whisper-1' },
    );
    expect(answer.status).toBe(200);
    const [charge] = listCharges(await since(before));
    expect(charge?.items[0]).toMatchObject({ usage: { audioMillisecond: 13_000 }, estimated: false });
  });

  test.each<[string, number, 'borne by the house' | 'nobody']>([
    ['400', 400, 'nobody'],
    ['429', 429, 'nobody'],
    ['500', 502, 'nobody'],
    ['overloaded', 503, 'nobody'],
    ['refuse', 503, 'borne by the house'],
    ['lost', 503, 'borne by the house'],
    ['malformed', 502, 'borne by the house'],
  ])(
    'is not made if the provider fails with %s (%i); the operator absorbs a cost that the provider may bill',
    async (fault, status, paidBy) => {
      const before = await factCount();
      const answer = await transcribe({ seconds: 30, note: `[[sandbox fault=${fault}]]` });
      expect([answer.status, answer.body?.status]).toEqual([status, 'error']);
      const facts = await since(before);
      expect(facts.map(({ type }) => type)).toEqual(
        paidBy === 'nobody' ? ['FundsHeld', 'HoldReleased'] : ['FundsHeld', 'HoldReleased', 'ChargeAbsorbed'],
      );
    },
  );

  test('is not made for lack of money, and the provider bills nothing', async () => {
    const poor = await world.createAccount();
    const answer = await transcribe({ seconds: 30 }, {}, poor);
    expect([answer.status, answer.body.error.type]).toEqual([402, 'insufficient_balance']);
    expect(await world.bill.fetchTotal()).toMatchObject({ lines: 0 });
  });

  test('is made once per Idempotency-Key, and the same key with another file is rejected', async () => {
    const before = await factCount();
    const key = { 'idempotency-key': 'sound-1' };
    const [first, again] = [await transcribe({}, {}, account, key), await transcribe({}, {}, account, key)];
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
    expect((await transcribe({ seconds: 5 }, {}, account, key)).status).toBe(409);
    expect(listCharges(await since(before))).toHaveLength(1);
  });
});

describe('a transcription that is rejected before money is held', () => {
  test.each<[string, Sound, Readonly<Record<string, string>>, number, RegExp]>([
    ['with an empty file', { bytes: Buffer.alloc(0) }, {}, 400, /file is empty/],
    [
      'with a file that is not audio',
      { bytes: Buffer.from('these are words, and no sound') },
      {},
      400,
      /mp3, mp4, mpeg, mpga, m4a, wav or webm/,
    ],
    ['with an unsupported format', { format: 'ogg' }, {}, 400, /whose content is/],
    ['with more than 25 MiB', { bytes: Buffer.alloc(25 * 1024 * 1024 + 1) }, {}, 413, /at most 26214400 bytes/],
    ['with an unsupported language', {}, { language: 'tlh' }, 400, /must be one of en, multi, es/],
    [
      'with an unsupported response format',
      {},
      { response_format: 'docx' },
      400,
      /response_format must be one of json, text, srt, vtt, verbose_json/,
    ],
    ['with an unknown model', {}, { model: 'nova-9' }, 404, /does not exist/],
    ['with a speech model', {}, { model: 'deepgram_aura_2' }, 400, /does not support transcription/],
    ['with a chat model', {}, { model: 'openai/gpt-5-mini' }, 400, /does not support transcription/],
    ['with an invalid temperature', {}, { temperature: 'hot' }, 400, /temperature must be a number/],
    ['with a prompt that is too long', {}, { prompt: 'a'.repeat(5_000) }, 400, /prompt must have at most/],
    ['with invalid preferences', {}, { provider: 'x' }, 400, /provider must be/],
  ])('is rejected %s', async (_, sound, fields, status, message) => {
    const before = await factCount();
    const answer = await transcribe(sound, fields);
    expect([answer.status, answer.body.statusCode]).toEqual([status, status]);
    expect(answer.body.message).toMatch(message);
    expect(await factCount()).toBe(before);
  });

  test('is rejected if data collection is denied and the provider of the model collects data', async () => {
    const answer = await transcribe({}, { provider: '{"data_collection":"deny"}' });
    expect([answer.status, answer.body.message]).toEqual([
      404,
      'No endpoints found for nova-3: deepgram collects data',
    ]);
    expect((await transcribe({}, { provider: '{"data_collection":"deny"}', model: 'whisper-1' })).status).toBe(200);
  });

  test('is rejected without a file or without a key', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}` };
    const body = new FormData();
    body.set('model', 'nova-3');
    expect((await world.send('POST', '/v1/audio/transcriptions', { body, headers })).status).toBe(400);
    expect((await world.send('POST', '/v1/audio/transcriptions', { body })).status).toBe(401);
  });
});
