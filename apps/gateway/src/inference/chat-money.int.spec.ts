import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createTestEndpoint,
  createTestModel,
  listCharges,
  slowTime,
  sumUsage,
  type TestAccount,
  TestWorld,
} from '#testing';

/** All prices are five times as high if the input has more than 1,000 tokens. */
const LONG = createTestModel('test/long', [
  createTestEndpoint('OpenAI', 'openai', {
    usdPerMillionTokens: { input: '1', cacheRead: '0.1', output: '2' },
    tiers: [{ above: 1_000, usdPerMillionTokens: { input: '5', cacheRead: '0.5', output: '10' } }],
    margin: '1',
  }),
]);
const FLAT = { model: 'countinghouse/flat' };

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({}, [LONG]);
});
afterAll(() => world.close());

/** Creates an account and spends all but 0.005 USD of its money on flat requests. */
async function poor(): Promise<TestAccount> {
  const account = await world.createAccount(0.105);
  await Promise.all(Array.from({ length: 10 }, () => world.sendChat(account, '', FLAT)));
  return account;
}

describe('an account without enough money', () => {
  test('gets a 402 with the required amount', async () => {
    const { status, body } = await world.sendChat(await world.createAccount(), '', FLAT);
    expect(status).toBe(402);
    expect(body).toMatchObject({
      status: 'error',
      statusCode: 402,
      message: expect.stringMatching(/^Insufficient balance/),
      error: {
        type: 'insufficient_balance',
        code: 'insufficient_quota',
        metadata: { error_type: 'payment_required', required: '0.01', affordable: '0', affordable_tokens: '0' },
      },
    });
  });

  test('gets the number of affordable tokens: max_tokens may have this value, and not one more', async () => {
    const account = await poor();
    const { status, body } = await world.sendChat(account, 'tokens=1', { max_tokens: 4_096 });
    expect(status).toBe(402);
    const most = Number(body.error.metadata.affordable_tokens);
    expect(most).toBeGreaterThan(2_000);
    expect(body.message).toContain(`max_tokens up to ${most}`);
    expect((await world.sendChat(account, 'tokens=1', { max_tokens: most + 1 })).status).toBe(402);
    expect((await world.sendChat(account, 'tokens=1', { max_tokens: most })).status).toBe(200);
  });

  test('gets a 402 with a message that says so if it cannot afford the input alone', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(200_000) }];
    const { status, body } = await world.sendChat(await poor(), '', { messages });
    expect(status).toBe(402);
    expect(body.message).toMatch(/^Insufficient balance: .* not enough for this input$/);
  });

  test('gets an error status and not an SSE event for a stream', async () => {
    const { status, headers, body } = await world.sendChat(await world.createAccount(), '', { stream: true });
    expect([status, body.statusCode]).toEqual([402, 402]);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
  });

  test('cannot spend more than its balance with concurrent requests', async () => {
    const account = await world.createAccount(0.105);
    const answers = await Promise.all(Array.from({ length: 25 }, () => world.sendChat(account, '', FLAT)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(15);
    expect(await world.fetchBalance(account)).toBe('0.005');
  });
});

describe('a completion without an output limit', () => {
  test.each([{ stream: false }, { stream: true }])('is limited to what the balance covers: %j', async (stream) => {
    const account = await poor();
    const { status, body, events } = await slowTime(() => world.sendChat(account, 'tokens=100000', stream));
    expect(status).toBe(200);
    const finish = body?.choices[0].finish_reason ?? events.at(-3).choices[0].finish_reason;
    const { usage } = body ?? events.at(-2);
    expect(finish).toBe('length');
    expect(usage.cost).toBeLessThanOrEqual(0.005);
    expect(usage.cost).toBeGreaterThan(0.00498);
    expect(Number(await world.fetchBalance(account))).toBeCloseTo(0.005 - usage.cost, 12);
  });

  test('shares the affordable tokens among its choices', async () => {
    const account = await poor();
    const { body } = await slowTime(() => world.sendChat(account, 'tokens=100000', { n: 4 }));
    expect(body.choices.map(({ finish_reason }: { finish_reason: string }) => finish_reason)).toEqual(
      Array(4).fill('length'),
    );
    expect(body.usage.cost).toBeLessThanOrEqual(0.005);
    expect(body.usage.cost).toBeGreaterThan(0.00498);
  });

  test('is not limited if the balance covers the longest completion', async () => {
    const account = await world.createAccount(1.05);
    const { status, body } = await slowTime(() => world.sendChat(account, 'tokens=100000'));
    expect({ status, error: body.error }).toEqual({ status: 200 });
    expect(body.choices[0].finish_reason).toBe('stop');
    expect(body.usage.completion_tokens).toBe(100_000);
  });
});

describe('a limit of the caller', () => {
  let rich: TestAccount;
  beforeAll(async () => {
    rich = await world.createAccount(10.5);
  });

  test.each([
    ['max_tokens', { max_tokens: 5 }, 5],
    ['max_completion_tokens', { max_completion_tokens: 6 }, 6],
    ['max_completion_tokens in addition to max_tokens', { max_tokens: 5, max_completion_tokens: 7 }, 7],
    ['max_tokens with an older model', { max_tokens: 5, model: 'openai/gpt-4o-mini' }, 5],
  ])('limits the completion if it is sent as %s', async (_, limit, tokens) => {
    const { body } = await world.sendChat(rich, 'tokens=50', limit);
    expect(body.choices[0].finish_reason).toBe('length');
    expect(body.usage.completion_tokens).toBe(tokens);
  });

  test.each([
    ['openai', 'openai/gpt-4o-mini'],
    ['anthropic', 'anthropic/claude-haiku-4.5'],
    ['openrouter', 'google/gemini-2.5-flash'],
    ['groq', 'openai/gpt-oss-20b'],
    ['deepinfra', 'openai/gpt-oss-20b'],
  ])('limits the completion at %s, whose field may have another name', async (provider, model) => {
    const only = provider === 'openrouter' ? {} : { provider: { only: [provider] } };
    const { status, body } = await world.sendChat(rich, 'tokens=50', { model, max_tokens: 5, ...only });
    expect([status, body.usage?.completion_tokens]).toEqual([200, 5]);
  });

  test('applies to each choice', async () => {
    const { body } = await world.sendChat(rich, 'tokens=50', { max_tokens: 5, n: 3 });
    expect(body.usage.completion_tokens).toBe(15);
    const held = (await world.listEvents(rich)).findLast(({ type }) => type === 'FundsHeld');
    const amount = held?.type === 'FundsHeld' ? Number(held.data.amount) : 0;
    expect(amount).toBeGreaterThanOrEqual(15 * 2_110_000);
    expect(amount).toBeLessThan(30 * 2_110_000);
  });

  test.each([128_001, 400_000])(
    'may exceed the maximum output of the model, up to its context: %d',
    async (max_tokens) => {
      const { status, body } = await world.sendChat(rich, 'tokens=50', { max_tokens, n: 2 });
      expect([status, body.usage.completion_tokens]).toEqual([200, 100]);
    },
  );

  test.each([400_001, 1e30, 1e308])(
    'above the context of the model is rejected before money is held: %d',
    async (max_tokens) => {
      const before = (await world.listEvents(rich)).length;
      const { status, body } = await world.sendChat(rich, 'tokens=50', { max_tokens });
      expect([status, body.error.param]).toEqual([400, 'max_tokens']);
      expect(await world.listEvents(rich)).toHaveLength(before);
    },
  );
});

describe('usage that costs more than was held', () => {
  test('costs the customer the held amount, and the rest is an overrun', async () => {
    const account = await world.createAccount(1.05);
    // The sandbox counts each exclamation mark as a token; the token bound of the hold counts two of them as one.
    const messages = [{ role: 'user', content: '!'.repeat(10_000) }];
    const { status, body } = await world.sendChat(account, '', { messages, max_tokens: 1 });
    expect(status).toBe(200);
    const [held, settled] = (await world.listEvents(account)).slice(-2);
    if (held?.type !== 'FundsHeld' || settled?.type !== 'HoldSettled')
      throw new Error('there are no FundsHeld and HoldSettled');
    expect(sumUsage(settled.data.charge).input).toBe(10_007);
    expect(settled.data.charged).toBe(held.data.amount);
    expect(BigInt(settled.data.charge.price)).toBeGreaterThan(BigInt(settled.data.charged));
    expect(body.usage.cost).toBe(Number(held.data.amount) / 1e12);
    expect(Number(await world.fetchBalance(account))).toBeCloseTo(1.05 - body.usage.cost, 12);
  });
});

describe('a model with separate prices for long inputs', () => {
  const ask = async (account: TestAccount, content: string) =>
    world.post(
      '/v1/chat/completions',
      { model: LONG.id, max_tokens: 10, messages: [{ role: 'user', content }] },
      account,
    );

  test('is listed with these prices, which apply to all tokens of a call with a long input', async () => {
    const account = await world.createAccount(1.05);
    for (const content of ['[[sandbox tokens=10]]', `[[sandbox tokens=10 fault=cached]] ${'word '.repeat(2_000)}`]) {
      expect((await ask(account, content)).status).toBe(200);
    }
    const facts = await world.listEvents(account);
    const [short, long] = listCharges(facts).map(({ items: [item], price }) => ({
      ...item?.usage,
      price: Number(price),
    }));
    const { input = 0, output = 0, cacheRead = 0 } = long ?? {};
    expect([input + cacheRead > 2_000, cacheRead > 0, output]).toEqual([true, true, 10]);
    expect(long?.price).toBe(input * 5e6 + cacheRead * 5e5 + output * 1e7);
    expect(short?.price).toBe((short?.input ?? 0) * 1e6 + 10 * 2e6);
    const held = facts.flatMap((fact) => (fact.type === 'FundsHeld' ? [Number(fact.data.amount)] : []));
    expect(held[1]).toBeGreaterThanOrEqual(long?.price ?? 0);
    expect(held[1]).toBeGreaterThan(2_000 * 5e6);
    expect((await world.get(`/v1/models/${LONG.id}`)).body.pricing).toMatchObject({
      prompt: '0.000001',
      overrides: [
        { min_prompt_tokens: 1_000, prompt: '0.000005', completion: '0.00001', input_cache_read: '0.0000005' },
      ],
    });
  });
});
