import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { APIError } from 'openai';
import { Clock } from '#application';
import { money } from '#kernel';
import { shiftClock, type TestAccount, TestWorld, timeOut } from '#testing';

const SMALL = 'openai/text-embedding-3-small';
const LARGE = 'openai/text-embedding-3-large';
const ADA = 'openai/text-embedding-ada-002';
/** A model of two providers. */
const QWEN = 'qwen/qwen3-embedding-8b';

let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(10.5);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
});
afterAll(() => world.close());

const embed = (input: unknown, more: object = {}, by = account) =>
  world.post('/v1/embeddings', { model: SMALL, input, ...more }, by);

/** Sends one request of a new account. Returns its response, the events after its hold, its record and its cost. */
async function exchange(input: unknown, more: object = {}) {
  const by = await world.createAccount(1.05);
  const answer = await embed(input, more, by);
  const facts = await world.listEvents(by);
  const held = facts.findIndex(({ type }) => type === 'FundsHeld');
  const [record] = (await world.get('/queries/history', by)).body.data;
  const { balance, held_usd } = (await world.post('/credits/balance', undefined, by)).body;
  expect(held_usd).toBe(0);
  // biome-ignore lint/suspicious/noExplicitAny: events of any shape
  const after = (held < 0 ? [] : facts.slice(held + 1)) as readonly { type: string; data: any }[];
  return { answer, facts: after, record, spent: (1.05 - balance).toFixed(12) };
}

const NOTHING = '0.000000000000';
const length = (vector: readonly number[]) => Math.hypot(...vector);

describe('embeddings', () => {
  test("have the format of OpenAI's list with the model name of the gateway, and their cost", async () => {
    const { status, headers, body, text } = await embed('Hello, world!');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-generation-id')).toBe(`gen-${headers.get('x-request-id')}`);
    expect(body).toEqual({
      object: 'list',
      model: SMALL,
      data: [{ object: 'embedding', index: 0, embedding: expect.any(Array) }],
      usage: { prompt_tokens: 4, total_tokens: 4, cost: 0.000000088 },
    });
    expect(text).toContain('"cost":0.000000088}');
    expect(body.data[0].embedding).toHaveLength(1_536);
    expect(length(body.data[0].embedding)).toBeCloseTo(1, 5);
  });

  test('are served at the path without /v1, also for an alias', async () => {
    const { body } = await world.post('/embeddings', { model: 'text-embedding-3-large', input: 'a' }, account);
    expect([body.model, body.data[0].embedding.length]).toEqual([LARGE, 3_072]);
  });

  test('are returned as the provider sent them', async () => {
    const sent = JSON.stringify({ model: 'text-embedding-3-small', input: ['a', 'b'], encoding_format: 'float' });
    const headers = { authorization: 'Bearer x', 'content-type': 'application/json' };
    const direct = await world.send('POST', '/openai/v1/embeddings', { body: sent, headers, api: world.sandbox });
    const data = JSON.stringify(direct.body.data);
    expect(direct.text).toContain(data);
    expect((await embed(['a', 'b'])).text).toContain(`"data":${data},`);
  });

  test.each<[string, unknown, number, number]>([
    ['a text', 'one two', 1, 2],
    ['texts', ['one', 'two', 'three four'], 3, 4],
    ['tokens', [1, 2, 3], 1, 3],
    ['arrays of tokens', [[1, 2, 3], [4]], 2, 4],
    ['2,048 texts', Array(2_048).fill('a'), 2_048, 2_048],
    ['8,191 tokens', Array(8_191).fill(1), 1, 8_191],
    ['a text of 8,000 tokens, although its upper bound exceeds the limit', 'hello '.repeat(8_000), 1, 8_000],
    ['a text of 8,191 tokens', ' hello'.repeat(8_191), 1, 8_191],
  ])('are created from %s', async (_, input, vectors, tokens) => {
    const { status, body } = await embed(input, { dimensions: 8 });
    expect(status).toBe(200);
    expect(body.data.map(({ index }: { index: number }) => index)).toEqual([...Array(vectors).keys()]);
    expect(body.usage.prompt_tokens).toBe(tokens);
  });

  test.each<[string, RegExp, unknown, object?]>([
    ['no input', /input must be/, undefined],
    ['an empty text', /empty/, ''],
    ['an empty text among others', /empty/, ['a', '']],
    ['an empty list', /empty/, []],
    ['an empty list of tokens', /non-empty/, [[1], []]],
    ['texts and tokens', /strings only/, ['a', [1]]],
    ['numbers that are not tokens', /numbers/, [1.5, -1]],
    ['a token that the model does not have', /below 100277 .*: 100277/, [100_276, 100_277]],
    [
      'a token that the model does not have, in one of several inputs',
      /below 151665/,
      [[1, 151_664], [151_665]],
      { model: QWEN },
    ],
    ['too many inputs', /2048/, Array(2_049).fill('a')],
    ['too many tokens', /at most 8,191 tokens/, Array(8_192).fill(1)],
    ['too many tokens in one of several inputs', /8,191 tokens.* input 1 has more/, [[1], Array(8_192).fill(1)]],
    ['one token too many in a text', /at most 8,191 tokens/, ' hello'.repeat(8_192)],
    ['one token too many in one of several texts', /8,191 tokens.* input 1 has more/, ['a', ' hello'.repeat(8_192)]],
    ['too long a text', /8,191 tokens/, 'hello '.repeat(8_300)],
    ['too long a text without gaps', /8,191 tokens/, 'a'.repeat(1_000_000)],
    ['an unknown format', /encoding_format/, 'a', { encoding_format: 'hex' }],
    ['zero dimensions', /at least 1/, 'a', { dimensions: 0 }],
    ['a fraction of a dimension', /an integer/, 'a', { dimensions: 1.5 }],
    ['more dimensions than the model has', /at most 1536/, 'a', { dimensions: 1_537 }],
    [
      'a number of dimensions for a model that supports only one number',
      /1536 dimensions only/,
      'a',
      { model: ADA, dimensions: 8 },
    ],
    ['a chat model', /its type is chat/, 'a', { model: 'openai/gpt-5-mini' }],
    ['malformed preferences', /provider/, 'a', { provider: 5 }],
  ])('are rejected for %s before money is held', async (_, message, input, more: object = {}) => {
    const before = (await world.listEvents(account)).length;
    const { status, body } = await embed(input, more);
    expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
    expect(body.message).toMatch(message);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  test('are rejected for an unknown model, without a suitable endpoint, without a key or without money', async () => {
    const poor = await world.createAccount();
    expect((await embed('a', { model: 'nope' })).status).toBe(404);
    expect((await embed('a', { provider: { only: ['nobody'] } })).status).toBe(404);
    expect((await embed('a', { model: `${SMALL}:beta` })).status).toBe(404);
    expect((await embed('a', { cheese: 1, provider: { require_parameters: true } })).status).toBe(404);
    expect((await world.post('/v1/embeddings', { model: SMALL, input: 'a' })).status).toBe(401);
    expect((await embed('a', {}, poor)).status).toBe(402);
  });

  test('is rejected with 402 before its tokens are counted, if it may cost more than is available', async () => {
    const poor = await world.createAccount(0.0105);
    const inputs = (count: number) => Array(count).fill('a b c '.repeat(3_000)); // 9,000 tokens each
    expect((await embed(inputs(100), {}, poor)).status).toBe(402);
    expect((await embed(inputs(10), {}, poor)).body.error).toMatchObject({
      type: 'invalid_request_error',
      message: expect.stringContaining('at most 8,191 tokens'),
    });
  });

  test('are served if an endpoint that supports all parameters is required and exists', async () => {
    expect((await embed('a', { provider: { require_parameters: true } })).status).toBe(200);
  });

  test('are not available through chat completions', async () => {
    expect((await world.sendChat(account, '', { model: SMALL })).status).toBe(400);
  });
});

describe('a client of embeddings', () => {
  test("receives the same vectors in base64, which OpenAI's client requests by default, and as floats", async () => {
    const body = { model: SMALL, input: ['one', 'two'] };
    const byDefault = await client.embeddings.create(body);
    const floats = await client.embeddings.create({ ...body, encoding_format: 'float' });
    expect(byDefault.data).toHaveLength(2);
    for (const [i, { embedding }] of byDefault.data.entries()) {
      const wanted = floats.data[i]?.embedding ?? [];
      expect(Array.from(embedding)).toEqual(wanted.map(Math.fround));
      expect(length(embedding)).toBeCloseTo(1, 5);
    }
  });

  test('receives base64 of four bytes per dimension on request', async () => {
    const { body } = await embed('one', { encoding_format: 'base64', dimensions: 3 });
    const bytes = Buffer.from(body.data[0].embedding, 'base64');
    expect(bytes).toHaveLength(12);
  });

  test('receives shorter vectors on request', async () => {
    const { data } = await client.embeddings.create({ model: LARGE, input: 'one', dimensions: 256 });
    expect(data[0]?.embedding).toHaveLength(256);
  });

  test("receives the status and the name of the field in an APIError of OpenAI's client", async () => {
    const error = await client.embeddings.create({ model: SMALL, input: '' }).catch((each) => each);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 400, param: 'input' });
  });
});

describe('embeddings of a faulty provider', () => {
  test.each<[string, number, string[], string[]]>([
    ['400', 400, ['invalid_request'], ['HoldReleased']],
    ['500', 502, Array(3).fill('upstream_error'), ['HoldReleased']],
    ['429', 429, Array(3).fill('rate_limited'), ['HoldReleased']],
    ['refuse', 503, Array(3).fill('upstream_unavailable'), ['HoldReleased']],
    ['timeout', 504, ['timeout'], ['HoldReleased']],
    ['malformed', 502, ['upstream_error'], ['HoldReleased', 'ChargeAbsorbed']],
    ['cut', 502, ['upstream_error'], ['HoldReleased', 'ChargeAbsorbed']],
  ])('are an error without a charge: %s leads to status %d', async (fault, status, outcomes, types) => {
    const ask = () => exchange(`[[sandbox fault=${fault}]]`);
    const { answer, facts, record, spent } = await (fault === 'timeout' ? timeOut(world, ask) : ask());
    expect(answer.status).toBe(status);
    expect(facts.map(({ type }) => type)).toEqual(types);
    expect(facts[0]?.data.attempts.map(({ outcome }: { outcome: string }) => outcome)).toEqual(outcomes);
    expect(record).toMatchObject({ query_type: 'embedding', model: SMALL, price_in_usd: 0 });
    expect(spent).toBe(NOTHING);
  });

  test('are charged once after retries', async () => {
    const { answer, facts, spent } = await exchange('[[sandbox id=embed fault=500 fault_times=2]]');
    expect(answer.status).toBe(200);
    expect(facts.map(({ type }) => type)).toEqual(['HoldSettled']);
    expect(facts[0]?.data.charge.attempts).toHaveLength(3);
    expect(spent).toBe((Number(facts[0]?.data.charged) / 1e12).toFixed(12));
  });

  test('are charged as an estimate if the provider reports no usage', async () => {
    const { answer, facts, record, spent } = await exchange(['[[sandbox fault=no_usage]]', 'one two three']);
    expect(facts[0]?.data.charge).toMatchObject({ items: [{ estimated: true }] });
    expect(answer.body.usage.prompt_tokens).toBeGreaterThan(3);
    expect(answer.body.usage.cost).toBe(record.price_in_usd);
    expect(record).toMatchObject({ query_type: 'embedding', isEstimated: true, output_count: 0 });
    expect(record).toMatchObject({ input_unit: 'tokens', output_unit: null });
    expect(spent).toBe(record.price_in_usd.toFixed(12));
  });

  test('are free if the provider reports zero tokens', async () => {
    const { answer, facts, spent } = await exchange('[[sandbox fault=zero]]');
    expect(answer.body.usage).toEqual({ prompt_tokens: 0, total_tokens: 0, cost: 0 });
    expect(facts[0]?.data.charge).toMatchObject({ items: [{ estimated: false }] });
    expect(spent).toBe(NOTHING);
  });
});

describe('a model of several providers', () => {
  const PROVIDERS = ['deepinfra', 'openrouter'] as const;
  /** A gateway avoids a provider for at most this long after a failure. */
  const MAX_PAUSE_MS = 60_000;
  let resetClock = () => {};
  beforeEach(() => {
    resetClock = shiftClock(world.getService(Clock), MAX_PAUSE_MS); // further than for the test before
  });
  afterAll(() => resetClock());

  const exchangeWithFault = (directive: string, more: object = {}) =>
    exchange([`[[sandbox ${directive}]]`, 'one two'], { model: QWEN, dimensions: 8, ...more });
  const tries = (charge: { attempts: readonly { provider: string; outcome: string }[] }) =>
    charge.attempts.map(({ provider, outcome }) => [provider, outcome]);

  test('returns the same vectors at each of its providers', async () => {
    const answers = await Promise.all(
      PROVIDERS.map((slug) => embed('Hello', { model: QWEN, provider: { only: [slug] } })),
    );
    const [first, second] = answers.map(({ body }) => body.data[0].embedding);
    expect(first).toHaveLength(4_096);
    expect(second).toEqual(first);
  });

  test.each([
    ['deepinfra', 'openrouter', '500', 'upstream_error'],
    ['openrouter', 'deepinfra', '500', 'upstream_error'],
    ['deepinfra', 'openrouter', '429', 'rate_limited'],
    ['deepinfra', 'openrouter', 'refuse', 'upstream_unavailable'],
    ['openrouter', 'deepinfra', 'overloaded', 'upstream_unavailable'],
  ])(
    'falls back to the next provider if %s fails, and charges only for the next provider',
    async (failing, next, fault, outcome) => {
      await world.bill.clear();
      const order = [failing, next];
      const { answer, facts, record, spent } = await exchangeWithFault(`fault=${fault} at=${failing}`, {
        provider: { order },
      });
      expect([answer.status, answer.body.data.length]).toEqual([200, 2]);
      expect(facts.map(({ type }) => type)).toEqual(['HoldSettled']);
      const { charge, charged } = facts[0]?.data ?? {};
      expect(charge).toMatchObject({ items: [{ provider: next, creditor: next }] });
      expect(tries(charge)).toEqual([
        [failing, outcome],
        [next, 'ok'],
      ]);
      expect(record).toMatchObject({ model: QWEN, error_code: null, price_in_usd: answer.body.usage.cost });
      expect(spent).toBe((Number(charged) / 1e12).toFixed(12));
      expect(await world.bill.fetchTotal()).toEqual({
        total_usd: (Number(charge.cost) / 1e12).toFixed(12).replace(/0+$/, ''),
        lines: 1,
      });
    },
  );

  test('does not fall back after a response that ended early: the operator absorbs its possible cost', async () => {
    await world.bill.clear();
    const { answer, facts, spent } = await exchangeWithFault('fault=cut at=deepinfra', {
      provider: { order: ['deepinfra'] },
    });
    expect(answer.status).toBe(502);
    expect(facts.map(({ type }) => type)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
    expect(facts[1]?.data.charge).toMatchObject({ items: [{ provider: 'deepinfra', estimated: true }] });
    expect(spent).toBe(NOTHING);
    expect((await world.bill.fetchTotal()).lines).toBe(1);
  });

  test.each([
    ['an error of the caller', 'fault=400 at=deepinfra', { order: ['deepinfra'] }, 400, ['invalid_request']],
    [
      'a failure without allowed fallbacks',
      'fault=500 at=deepinfra',
      { order: ['deepinfra'], allow_fallbacks: false },
      502,
      Array(3).fill('upstream_error'),
    ],
  ])('does not fall back after %s, which costs nothing', async (_, directive, provider, status, outcomes) => {
    const { answer, facts, spent } = await exchangeWithFault(directive, { provider });
    expect(answer.status).toBe(status);
    expect(facts.map(({ type }) => type)).toEqual(['HoldReleased']);
    expect(tries(facts[0]?.data).map(([, outcome]) => outcome)).toEqual(outcomes);
    expect(spent).toBe(NOTHING);
  });

  test('costs nothing and returns an error if all its providers fail', async () => {
    const { answer, facts, record, spent } = await exchangeWithFault('fault=500', { provider: { order: PROVIDERS } });
    expect(answer.status).toBe(502);
    expect(tries(facts[0]?.data)).toEqual([
      ['deepinfra', 'upstream_error'],
      ...Array(3).fill(['openrouter', 'upstream_error']),
    ]);
    expect(record).toMatchObject({ price_in_usd: 0, error_code: 'upstream_error' });
    expect(spent).toBe(NOTHING);
  });

  test('accepts inputs up to the limit of the model', async () => {
    expect((await embed(Array(32_768).fill(1), { model: QWEN, dimensions: 4 })).status).toBe(200);
    expect((await embed(Array(32_769).fill(1), { model: QWEN })).body.message).toContain('32,768 tokens');
  });
});

test('records exactly the cost that the providers bill', async () => {
  await world.bill.clear();
  const by = await world.createAccount(1.05);
  const inputs = ['one', ['one', 'two three'], [1, 2, 3], [[1], [2, 3]], '[[sandbox fault=500]]', 'é '.repeat(99)];
  const models = [SMALL, LARGE, ADA, QWEN];
  await Promise.all(models.flatMap((model) => inputs.map((input) => embed(input, { model }, by))));
  const facts = await world.listEvents(by);
  const costs = facts.flatMap(({ type, data }) => (type === 'HoldSettled' ? [BigInt(data.charge.cost)] : []));
  const { total_usd, lines } = await world.bill.fetchTotal();
  expect(lines).toBe(costs.length);
  expect(lines).toBe(20);
  expect(money.toJsonAmount(money.parseUsd(total_usd))).toBe(String(costs.reduce((sum, each) => sum + each, 0n)));
});

test('lists embedding models by their type and in the list of all models', async () => {
  const rows = async (type: string): Promise<{ id: string; type: string }[]> =>
    (await world.get(`/v1/models${type}`)).body.data;
  const [own, all, chat] = await Promise.all([rows('?type=embedding'), rows('?type=all'), rows('')]);
  expect(own.map(({ id }) => id)).toEqual([SMALL, LARGE, ADA, QWEN]);
  expect(all).toEqual(expect.arrayContaining([...own, ...chat]));
  expect(chat.some(({ type }) => type !== 'chat')).toBe(false);
  expect(own[0]).toMatchObject({
    type: 'embedding',
    context_length: 8_191,
    architecture: { modality: 'text->embeddings' },
    pricing: { input_per_1M_tokens: 0.022, prompt: '0.000000022' },
    supported_parameters: ['encoding_format', 'dimensions', 'user'],
    top_provider: { max_completion_tokens: null },
  });
});
