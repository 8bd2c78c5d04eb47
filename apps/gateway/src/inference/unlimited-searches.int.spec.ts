/** Native searches of providers that no request can limit: Google's for Gemini, and that of xAI for Grok. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BillingEngine } from '#application';
import { verify } from '#audit';
import { parseUsd } from '#kernel';
import { formatTotalCost, listCharges, listExtraItems, sampleCases, type TestAccount, TestWorld } from '#testing';

const TOOL = { type: 'web_search', parameters: { engine: 'native' } };
const PLUGIN = { id: 'web', engine: 'native' };
const SEARCH = 'tool=web_search';
const GOOGLE = { of: 'web_search_google', provider: 'google-ai-studio', creditor: 'google' };
const XAI = { of: 'web_search_xai', provider: 'xai', creditor: 'openrouter' };
const PRICES = { [GOOGLE.of]: { price: '0.01477', cost: '0.014' }, [XAI.of]: { price: '0.005275', cost: '0.005' } };

/** Returns the charge item of `times` searches. */
function searched(fee: typeof GOOGLE, times: number) {
  const { price, cost } = PRICES[fee.of] as (typeof PRICES)[string];
  const multiply = (usd: string) => String(parseUsd(usd) * BigInt(times));
  const usage = { search: times, request: 1 };
  return { ...fee, beside: true, estimated: false, usage, price: multiply(price), cost: multiply(cost) };
}

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(20);
  await world.bill.clear();
});

const charges = async () => listCharges(await world.listEvents(account));

/** Checks that the charges match the bill and that no cost differs, and returns the items besides those of models. */
async function findSearches(): Promise<readonly unknown[]> {
  const all = await charges();
  expect(formatTotalCost(all)).toBe((await world.bill.fetchTotal()).total_usd);
  expect(world.getService(BillingEngine).costMonitor.list()).toEqual([]);
  return all.flatMap(listExtraItems);
}

const FAMILIES = [
  ['google/gemini-3.8-flash', GOOGLE],
  ['google/gemini-3.5-flash-lite', GOOGLE],
  ['x-ai/grok-4.7', XAI],
  ['x-ai/grok-4.3', XAI],
  ['google/gemini-3.1-pro', GOOGLE],
] as const;

describe.each(sampleCases(FAMILIES, 2))('the native search of %s', (model, fee) => {
  const chat = (directive: string, more: object = {}) => world.sendChat(account, directive, { model, ...more });

  test.each([
    ['the plugin', { plugins: [PLUGIN] }, SEARCH, 1],
    ['the tool, if the model decides to search', { tools: [TOOL] }, `${SEARCH} tool_times=2 text="Found it"`, 2],
    ['the tool with a tool choice', { tools: [TOOL], tool_choice: { type: 'web_search' } }, SEARCH, 1],
  ])('is requested by %s, and each search is charged', async (_, more, directive, searches) => {
    for (const stream of [false, true]) {
      const response = await chat(directive, { ...more, stream });
      expect(response.status).toBe(200);
      const annotations = stream
        ? response.events.flatMap((event) => event.choices?.[0]?.delta.annotations ?? [])
        : response.body.choices[0].message.annotations;
      expect(annotations.length).toBeGreaterThanOrEqual(1);
      expect(annotations[0]).toMatchObject({ type: 'url_citation', url_citation: { url: expect.any(String) } });
    }
    const expected = expect.objectContaining(searched(fee, searches));
    expect(await findSearches()).toEqual([expected, expected]);
  });

  test('costs no fee if the model does not search', async () => {
    expect((await chat('tokens=4', { tools: [TOOL] })).status).toBe(200);
    expect(await findSearches()).toEqual([]);
  });

  test('is used only on request', async () => {
    await chat('tokens=4', { plugins: [{ id: 'web' }] });
    expect(await findSearches()).toMatchObject([{ of: 'web_search', creditor: 'exa' }]);
  });

  test('is charged for every search, also for more than the hold pays for', async () => {
    for (const stream of [false, true]) {
      const { status } = await chat(`${SEARCH} tool_times=40`, { plugins: [PLUGIN], max_tokens: 50, stream });
      expect(status).toBe(200);
    }
    const expected = expect.objectContaining(searched(fee, 40));
    expect(await findSearches()).toEqual([expected, expected]);
    const ends = (await world.listEvents(account)).flatMap(({ type, data }) =>
      type === 'HoldSettled' ? [data.charged === data.charge.price] : [],
    );
    expect(ends).toEqual([true, true]);
  });

  test('needs money for three searches', async () => {
    const headers = { 'x-credit-id': account.creditId };
    const key = await world.send('POST', '/keys', { body: { name: 'capped', usage_limit_usd: 0.03 }, headers });
    const capped = { ...account, apiKey: key.body.data.api_key };
    const send = (more: object) => world.sendChat(capped, SEARCH, { model, max_tokens: 20, ...more });

    const required = await send({ plugins: [PLUGIN] });
    const optional = await send({ tools: [TOOL] });

    expect(required.status).toBe(402);
    expect(optional.status).toBe(200);
    expect((await charges()).flatMap(listExtraItems)).toEqual([]);
  });

  test('costs at most the balance, and the rest is an overrun', async () => {
    const poor = await world.createAccount(1.3);
    const { status } = await world.sendChat(poor, `${SEARCH} tool_times=400`, { model, plugins: [PLUGIN] });

    expect(status).toBe(200);
    const settled = (await world.listEvents(poor)).at(-1);
    if (settled?.type !== 'HoldSettled') throw new Error('the hold was not settled');
    expect(BigInt(settled.data.charge.price)).toBeGreaterThan(BigInt(settled.data.charged));
    expect(Number(await world.fetchBalance(poor))).toBeGreaterThanOrEqual(0);
    expect(formatTotalCost([settled.data.charge])).toBe((await world.bill.fetchTotal()).total_usd);
  });

  test('is not made with zero data retention', async () => {
    const { status, body } = await chat('tokens=4', { plugins: [PLUGIN], provider: { zdr: true } });
    expect([status, body.error.param]).toEqual([404, 'provider']);
    expect((await world.bill.fetchTotal()).lines).toBe(0);
  });

  test('is an item of a Response', async () => {
    const input = `[[sandbox ${SEARCH} tool_times=2 text="Found it"]]`;
    const { status, body } = await world.post('/v1/responses', { model, input, tools: [TOOL] }, account);
    expect(status).toBe(200);
    const calls = body.output.filter(({ type }: { type: string }) => type === 'web_search_call');
    expect(calls.length).toBeGreaterThanOrEqual(fee === GOOGLE ? 2 : 0);
    expect(body.output_text).toBe('Found it');
    expect(await findSearches()).toEqual([expect.objectContaining(searched(fee, 2))]);
  });
});

test.each(['include_domains', 'exclude_domains'])('Google’s search is rejected with %s', async (field) => {
  const plugins = [{ ...PLUGIN, [field]: ['a.example'] }];
  const { status, body } = await world.sendChat(account, 'tokens=4', { model: 'google/gemini-3.8-flash', plugins });
  expect([status, body.error.param]).toEqual([400, 'plugins.engine']);
  expect((await world.bill.fetchTotal()).lines).toBe(0);
});

test('the ledger verifies', async () => {
  for (const [model] of FAMILIES) await world.sendChat(account, SEARCH, { model, plugins: [PLUGIN] });
  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});
