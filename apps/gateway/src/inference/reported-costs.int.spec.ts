/** What providers report about their bill is recorded as evidence, and the operator is notified of differences. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BillingEngine } from '#application';
import { verify } from '#audit';
import { hasDifferentCost } from '#domain';
import { parseUsd } from '#kernel';
import { listCharges, openTappedWorld, type TappedWorld, type TestAccount } from '#testing';
import { printCosts } from '../../../ledger/src/costs.ts';

let tapped: TappedWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  account = await tapped.world.createAccount(50);
});
afterAll(() => tapped.close());
beforeEach(() => void tapped.tap.takeReceived());

const amount = (usd: string) => parseUsd(usd).toString();
const list = () => tapped.world.getService(BillingEngine).costMonitor.list();

async function findLastItems() {
  return listCharges(await tapped.world.listEvents(account)).at(-1)?.items ?? [];
}

async function chat(model: string, directive: string, more: object = {}) {
  const response = await tapped.world.sendChat(account, directive, { model, ...more });
  expect(response.status).toBe(200);
  const [item] = await findLastItems();
  if (!item) throw new Error('nothing was charged');
  return { response, item };
}

const EMBEDDER = 'qwen/qwen3-embedding-8b';
const FORMS = [
  ['non-streaming', {}],
  ['streamed', { stream: true }],
] as const;

describe.each([
  ['openrouter', 'deepseek/deepseek-r1', { provider: { only: ['deepseek'] } }],
  ['openrouter', 'perplexity/sonar', {}],
  ['deepinfra', 'qwen/qwen3-32b', {}],
] as const)('%s reports the cost of %s', (provider, model, options) => {
  test.each(FORMS)('which is recorded with the calculated one, %s', async (_, form) => {
    const { item } = await chat(model, 'tokens=30 reasoning=7', { ...options, ...form });

    expect(item.creditor).toBe(provider);
    expect(item.reportedCost).toBe(item.cost);
  });

  test.each(FORMS)('and the charge does not depend on it, %s', async (_, form) => {
    const { item } = await chat(model, 'tokens=30 reasoning=7', { ...options, ...form });
    const other = await chat(model, 'tokens=30 reasoning=7 cost=0.50', { ...options, ...form });

    const { input: _input, ...usage } = other.item.usage;
    expect(item.usage).toMatchObject(usage);
    expect(other.item.reportedCost).toBe(amount('0.5'));
    expect(BigInt(other.item.price)).toBeLessThan(parseUsd('0.01'));
    expect(list()).toContainEqual({ model, provider, subject: 'cost', calls: expect.any(Number) });
    expect(other.response.text).not.toMatch(/"cost":\s*0\.5/);
    expect(other.response.text).not.toContain('estimated_cost');
  });

  test('and one that cannot be true is ignored', async () => {
    const { item } = await chat(model, 'tokens=3 cost=-1', options);
    expect(item).not.toHaveProperty('reportedCost');
    expect(list()).toContainEqual({ model, provider, subject: 'implausible cost', calls: 1 });
  });
});

test('the cost of embeddings is recorded with the calculated one', async () => {
  const provider = { only: ['openrouter'] };
  const embed = (input: string) => tapped.world.post('/v1/embeddings', { model: EMBEDDER, input, provider }, account);
  expect((await embed('a few words')).status).toBe(200);
  const [item] = await findLastItems();
  expect(item?.creditor).toBe('openrouter');
  expect(item && hasDifferentCost(item)).toBe(false);

  expect((await embed('[[sandbox cost=0.50]]')).status).toBe(200);
  const [other] = await findLastItems();
  expect(other?.reportedCost).toBe(amount('0.5'));
});

test.each([
  [5, '0.007'],
  [20, '0.017'], // ten of them in addition to the search
])('a search with %d results costs what Exa reports', async (max_results, usd) => {
  await chat('qwen/qwen3-32b', 'tokens=4', { plugins: [{ id: 'web', max_results }] });
  const search = (await findLastItems()).find(({ creditor }) => creditor === 'exa');
  expect(search).toMatchObject({ cost: amount(usd), reportedCost: amount(usd), price: amount('0.02') });
});

test.each([
  ['search', { query: 'lighthouses' }, '0.007'],
  ['contents', { urls: ['https://example.com'], text: true }, '0.001'],
  ['answer', { query: 'Who keeps the lighthouse?' }, '0.005'],
])('the lookup web/%s costs what Exa reports', async (action, body, usd) => {
  expect((await tapped.world.post(`/v1/data/api/web/${action}`, body, account)).status).toBe(200);
  expect(await findLastItems()).toMatchObject([{ creditor: 'exa', cost: amount(usd), reportedCost: amount(usd) }]);
});

describe('the tier of a request', () => {
  test.each([
    ['openai/gpt-4o-mini', 'default', {}],
    ['openai/gpt-5-codex', 'default', {}],
    ['anthropic/claude-haiku-4.5', 'standard_only', {}],
    ['openai/gpt-oss-120b', 'on_demand', { provider: { only: ['groq'] } }],
    ['openai/gpt-oss-120b', undefined, { provider: { only: ['deepinfra'] } }],
    ['mistralai/mistral-large-3', undefined, {}],
  ])('of %s is always %s at its provider, whatever the request says', async (model, tier, options) => {
    for (const service_tier of [undefined, 'priority', 'flex']) {
      await chat(model, 'tokens=4', { service_tier, ...options });
      expect(tapped.tap.takeReceived().map(({ body }) => body.service_tier)).toEqual([tier]);
    }
  });

  test('is sent with Responses and Messages as well', async () => {
    const input = { model: 'openai/gpt-5-mini', input: 'Hello', service_tier: 'priority' };
    expect((await tapped.world.post('/v1/responses', input, account)).status).toBe(200);
    const messages = [{ role: 'user', content: 'Hello' }];
    const message = { model: 'anthropic/claude-haiku-4.5', max_tokens: 20, messages };
    expect((await tapped.world.post('/v1/messages', message, account)).status).toBe(200);
    const tiers = tapped.tap.takeReceived().map(({ body }) => body.service_tier);
    expect(tiers).toEqual(['default', 'standard_only']);
  });

  test.each(FORMS)('that the response names is reported if it has no price, %s', async (_, form) => {
    const standard = await chat('openai/gpt-4o-mini', 'tokens=4', form);
    const { item } = await chat('openai/gpt-4o-mini', 'tokens=4 service_tier=priority', form);

    expect(standard.item).not.toHaveProperty('terms');
    expect(item.terms).toEqual({ service_tier: 'priority' });
    expect(list()).toContainEqual(expect.objectContaining({ provider: 'openai', subject: 'service_tier priority' }));
  });

  test.each(FORMS)('of a Responses request is reported as well, %s', async (_, form) => {
    await chat('openai/gpt-5-codex', 'tokens=20 service_tier=flex', form);
    const [item] = await findLastItems();
    expect(item?.terms).toEqual({ service_tier: 'flex' });
  });
});

describe('Anthropic', () => {
  test.each(FORMS)('names a geography and a speed without a price, which is reported, %s', async (_, form) => {
    const directive = 'tokens=4 inference_geo=us speed=fast service_tier=priority';
    const { item } = await chat('anthropic/claude-haiku-4.5', directive, form);

    expect(item.terms).toEqual({ inference_geo: 'us', speed: 'fast', service_tier: 'priority' });
    const subjects = list().flatMap(({ provider, subject }) => (provider === 'anthropic' ? [subject] : []));
    expect(subjects).toEqual(['service_tier priority', 'inference_geo us', 'speed fast']);
  });

  test.each(FORMS)('writes 100,000 tokens to a cache for an hour, which cost 0.20 USD, %s', async (_, form) => {
    const { item } = await chat('anthropic/claude-haiku-4.5', 'tokens=4 hour_cache_writes=100000', form);

    const { input = 0, output = 0, cacheWriteHour } = item.usage;
    expect(cacheWriteHour).toBe(100_000);
    expect(item.cost).toBe((parseUsd('0.2') + BigInt(input) * 1_000_000n + BigInt(output) * 5_000_000n).toString());
  });
});

describe('a cache for an hour that is requested', () => {
  const model = 'anthropic/claude-haiku-4.5'; // 1 USD per million tokens of input, 2 USD to cache it for an hour
  const isHourWrite = (observation: object) => JSON.stringify(observation).includes('for an hour');
  const text = 'a word '.repeat(4_000);
  const marked = (ttl?: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });

  async function send(path: string, content: object, more: object = {}) {
    const reported = list().find(isHourWrite)?.calls;
    const messages = [{ role: 'user', content: [content, { type: 'text', text: '[[sandbox tokens=4]]' }] }];
    const response = await tapped.world.post(path, { model, max_tokens: 9, messages, ...more }, account);
    expect(response.status).toBe(200);
    expect(list().find(isHourWrite)?.calls).toBe(reported);
    const events = await tapped.world.listEvents(account);
    const hold = events.findLast(({ type }) => type === 'FundsHeld');
    const [item] = listCharges(events).at(-1)?.items ?? [];
    if (hold?.type !== 'FundsHeld' || !item) throw new Error('nothing was held or charged');
    return { response, item, held: BigInt(hold.data.amount), sent: tapped.tap.takeReceived().at(-1)?.body };
  }

  test.each([
    ['/v1/chat/completions', {}],
    ['/v1/chat/completions', { stream: true }],
    ['/v1/messages', {}],
    ['/v1/messages', { stream: true }],
  ])('is made and charged at twice the input, which the hold covers: %s %j', async (path, form) => {
    const { item, held, sent } = await send(path, marked('1h'), form);

    const mark = { type: 'ephemeral', ttl: '1h' };
    expect(sent).toMatchObject({ messages: [{ content: [{ cache_control: mark }, {}] }] });
    const { input = 0, cacheWriteHour = 0, output = 0 } = item.usage;
    expect(cacheWriteHour).toBeGreaterThan(4_000);
    const millionth = (tokens: number) => BigInt(tokens) * parseUsd('0.000001');
    expect(BigInt(item.cost)).toBe(millionth(input) + 2n * millionth(cacheWriteHour) + 5n * millionth(output));
    expect(held).toBeGreaterThanOrEqual(BigInt(item.price));
  });

  test('is reported by its lifetime in Messages', async () => {
    const { response, item } = await send('/v1/messages', marked('1h'));
    expect(response.body.usage).toMatchObject({
      cache_creation_input_tokens: item.usage.cacheWriteHour,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: item.usage.cacheWriteHour },
    });
  });

  test('of a tool is made, and one of five minutes holds less', async () => {
    const declared = { name: 'f', description: text, input_schema: { type: 'object' } };
    const tools = [{ ...declared, cache_control: { type: 'ephemeral', ttl: '1h' } }];
    const hour = await send('/v1/messages', { type: 'text', text: 'Hi' }, { tools });
    expect(hour.item.usage.cacheWriteHour).toBeGreaterThan(4_000);
    const short = await send('/v1/messages', marked('5m'));
    expect(short.item.usage).not.toHaveProperty('cacheWriteHour');
    expect(short.held).toBeLessThan(hour.held);
  });

  test('does not exist at other providers, which are not sent its mark', async () => {
    const { item, sent } = await send('/v1/chat/completions', marked('1h'), { model: 'openai/gpt-4o-mini' });
    expect(JSON.stringify(sent)).not.toContain('cache_control');
    expect(item.usage).not.toHaveProperty('cacheWriteHour');
  });

  test('with another lifetime is rejected', async () => {
    const content = [marked('24h')];
    const body = { model, max_tokens: 9, messages: [{ role: 'user', content }] };
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const { status, text } = await tapped.world.post(path, body, account);
      expect([status, text]).toEqual([400, expect.stringContaining('cache_control.ttl must be')]);
    }
  });
});

test('Groq charges half for cached tokens', async () => {
  const options = { provider: { only: ['groq'] } };
  const { item } = await chat('openai/gpt-oss-120b', 'tokens=4 fault=cached', options);
  const { input = 0, cacheRead = 0, output = 0 } = item.usage;
  expect(cacheRead).toBeGreaterThan(0);
  expect(item.cost).toBe(String(input * 150_000 + cacheRead * 75_000 + output * 600_000));
});

test('health lists what differs, without amounts', async () => {
  const { body } = await tapped.world.get('/health/ready');
  expect(body.checks.costs).toMatchObject({ ok: false, required: false });
  expect(body.checks.costs.different[0]).toEqual({
    model: 'deepseek/deepseek-r1',
    provider: 'openrouter',
    subject: 'cost',
    calls: 2,
  });
});

test('the ledger lists the reported costs, and verifies with drift 0', async () => {
  const lines: string[] = [];
  await printCosts(tapped.world.foundation.store, { since: undefined, until: undefined }, (line) => lines.push(line));
  expect(lines[0]).toMatch(/^\d+ calls with a reported cost, 7 of them differ by more than 1 %: 3\.4\d+ USD beyond/);
  await verify(tapped.world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});
