import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestEndpoint, createTestModel, listCharges, sumUsage, type TestAccount, TestWorld } from '#testing';

/** Five times as dear, cached input and output as well, where the input has more than a thousand tokens. */
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

/** An account with 0.005 USD: 0.105 less ten flat requests. */
async function poor(): Promise<TestAccount> {
  const account = await world.createAccount(0.105);
  await Promise.all(Array.from({ length: 10 }, () => world.sendChat(account, '', FLAT)));
  return account;
}

describe('an account without enough money', () => {
  test('learns that its balance is insufficient, and what was required', async () => {
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

  test('learns how many tokens it can afford: that many are served, and not one more', async () => {
    const account = await poor();
    const { status, body } = await world.sendChat(account, 'tokens=1', { max_tokens: 4_096 });
    expect(status).toBe(402);
    const most = Number(body.error.metadata.affordable_tokens);
    expect(most).toBeGreaterThan(2_000);
    expect(body.message).toContain(`max_tokens up to ${most}`);
    expect((await world.sendChat(account, 'tokens=1', { max_tokens: most + 1 })).status).toBe(402);
    expect((await world.sendChat(account, 'tokens=1', { max_tokens: most })).status).toBe(200);
  });

  test('learns when it cannot even afford the question', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(200_000) }];
    const { status, body } = await world.sendChat(await poor(), '', { messages });
    expect(status).toBe(402);
    expect(body.message).toMatch(/^Insufficient balance: .* not enough for this input$/);
  });

  test('learns it from a status, not within a stream', async () => {
    const { status, headers, body } = await world.sendChat(await world.createAccount(), '', { stream: true });
    expect([status, body.statusCode]).toEqual([402, 402]);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
  });

  test('never gets more than it has, however many requests come at once', async () => {
    const account = await world.createAccount(0.105);
    const answers = await Promise.all(Array.from({ length: 25 }, () => world.sendChat(account, '', FLAT)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(15);
    expect(await world.fetchBalance(account)).toBe('0.005');
  });
});

describe('an answer without a limit of its own', () => {
  test.each([{ stream: false }, { stream: true }])('is cut to what the balance affords: %j', async (stream) => {
    const account = await poor();
    const { status, body, events } = await world.sendChat(account, 'tokens=100000', stream);
    expect(status).toBe(200);
    const finish = body?.choices[0].finish_reason ?? events.at(-3).choices[0].finish_reason;
    const { usage } = body ?? events.at(-2);
    expect(finish).toBe('length');
    expect(usage.cost).toBeLessThanOrEqual(0.005);
    expect(usage.cost).toBeGreaterThan(0.00498);
    expect(Number(await world.fetchBalance(account))).toBeCloseTo(0.005 - usage.cost, 12);
  });

  test('shares what the balance affords among its choices', async () => {
    const account = await poor();
    const { body } = await world.sendChat(account, 'tokens=100000', { n: 4 });
    expect(body.choices.map(({ finish_reason }: { finish_reason: string }) => finish_reason)).toEqual(
      Array(4).fill('length'),
    );
    expect(body.usage.cost).toBeLessThanOrEqual(0.005);
    expect(body.usage.cost).toBeGreaterThan(0.00498);
  });

  test('is not cut where the balance affords the longest one', async () => {
    const { body } = await world.sendChat(await world.createAccount(1.05), 'tokens=100000');
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
    ['the newer of both', { max_tokens: 5, max_completion_tokens: 7 }, 7],
    ['max_tokens with an older model', { max_tokens: 5, model: 'openai/gpt-4o-mini' }, 5],
  ])('given as %s cuts the answer', async (_, limit, tokens) => {
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
  ])('reaches %s by the name that it has there', async (provider, model) => {
    const only = provider === 'openrouter' ? {} : { provider: { only: [provider] } };
    const { status, body } = await world.sendChat(rich, 'tokens=50', { model, max_tokens: 5, ...only });
    expect([status, body.usage?.completion_tokens]).toEqual([200, 5]);
  });

  test('holds for each choice', async () => {
    const { body } = await world.sendChat(rich, 'tokens=50', { max_tokens: 5, n: 3 });
    expect(body.usage.completion_tokens).toBe(15);
    const held = (await world.listEvents(rich)).findLast(({ type }) => type === 'FundsHeld');
    const amount = held?.type === 'FundsHeld' ? Number(held.data.amount) : 0;
    expect(amount).toBeGreaterThanOrEqual(15 * 2_110_000);
    expect(amount).toBeLessThan(30 * 2_110_000);
  });

  test.each([128_001, 1e9, 1e30, 1e308])(
    'of %d, beyond what the model makes, asks for no more than that',
    async (max_tokens) => {
      const { status, body } = await world.sendChat(rich, 'tokens=50', { max_tokens, n: 2 });
      expect([status, body.usage.completion_tokens]).toEqual([200, 100]);
    },
  );
});

describe('a use that costs more than was held', () => {
  test('costs the customer what was held, and the rest is shown as an overrun', async () => {
    const account = await world.createAccount(1.05);
    // The sandbox counts every mark as a token; the bound that is held for takes two for one.
    const messages = [{ role: 'user', content: '!'.repeat(10_000) }];
    const { status, body } = await world.sendChat(account, '', { messages, max_tokens: 1 });
    expect(status).toBe(200);
    const [held, settled] = (await world.listEvents(account)).slice(-2);
    if (held?.type !== 'FundsHeld' || settled?.type !== 'HoldSettled') throw new Error('it was not held and settled');
    expect(sumUsage(settled.data.charge).input).toBe(10_007);
    expect(settled.data.charged).toBe(held.data.amount);
    expect(BigInt(settled.data.charge.price)).toBeGreaterThan(BigInt(settled.data.charged));
    expect(body.usage.cost).toBe(Number(held.data.amount) / 1e12);
    expect(Number(await world.fetchBalance(account))).toBeCloseTo(1.05 - body.usage.cost, 12);
  });
});

describe('a model whose long inputs have a price of their own', () => {
  const ask = async (account: TestAccount, content: string) =>
    world.post(
      '/v1/chat/completions',
      { model: LONG.id, max_tokens: 10, messages: [{ role: 'user', content }] },
      account,
    );

  test('is listed with it, and holds and charges by it all tokens of a call that is above the bound', async () => {
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
