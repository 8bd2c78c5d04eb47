import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { getShippedCatalogueDir } from '#catalogue';
import type { Charge } from '#domain';
import {
  createTestEndpoint,
  createTestModel,
  extendDelay,
  extendTimeouts,
  formatTotalCost,
  isEstimated,
  isExplained,
  listCallItems,
  listExtraItems,
  readResponse,
  sampleCases,
  sumUsage,
  type TestAccount,
  TestWorld,
  timeOut,
} from '#testing';

const MODEL = 'openai/gpt-4.1-mini';
const FLAT = 'countinghouse/flat';
const OPEN = 'openai/gpt-oss-120b';
const TOOL = { type: 'web_search' };
const BOOK = { type: 'function', function: { name: 'book', parameters: { type: 'object', properties: {} } } };
const SEARCH = 'tool=web_search';
const FEE = {
  of: 'web_search',
  provider: 'exa',
  creditor: 'exa',
  beside: true,
  usage: { search: 1, request: 1 },
  estimated: false,
  vendorId: expect.any(String),
  price: '20000000000',
  cost: '7000000000',
  reportedCost: '7000000000',
};

const MODELS = [
  createTestModel('test/toolless', [
    createTestEndpoint('OpenAI', 'openai', { parameters: ['max_tokens', 'temperature'] }),
  ]),
  createTestModel(
    'test/free',
    [createTestEndpoint('OpenAI', 'openai', { usdPerMillionTokens: { input: '0', output: '0' } })],
    { freeTier: true },
  ),
];

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open({}, MODELS);
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(1);
  await world.bill.clear();
});

const ask = (directive: string, more: object = {}) =>
  world.sendChat(account, directive, { model: MODEL, tools: [TOOL], ...more });

const searchesBilled = async () => (await world.bill.fetchLines()).filter((line) => line.model === 'exa/search').length;

/** Waits for the only charge of the account, settled or absorbed, and returns it. */
async function charged(): Promise<{ readonly type: string; readonly charge: Charge }> {
  const charges = async () =>
    (await world.listEvents(account)).flatMap((fact) =>
      fact.type === 'HoldSettled' || fact.type === 'ChargeAbsorbed'
        ? [{ type: fact.type as string, charge: fact.data.charge }]
        : [],
    );
  await world.waitUntil(async () => (await charges()).length > 0);
  const all = await charges();
  expect(all).toHaveLength(1);
  return all[0] as { type: string; charge: Charge };
}

/** Checks that the recorded cost is what the providers invoice, and that the price list explains the charge. */
async function assertBooksAreTheBill(): Promise<void> {
  const { charge } = await charged();
  expect(formatTotalCost([charge])).toBe((await world.bill.fetchTotal()).total_usd);
  const facts = await world.listEvents();
  const lists = facts.flatMap((fact) => (fact.type === 'PriceListPublished' ? [fact.data] : []));
  const list = lists.find(({ version }) => version === charge.priceList);
  expect(isExplained(charge, list?.lines ?? [])).toBe(true);
}

/** Returns the number of model calls and searches of a charge, and whether it has an estimate. */
const counts = (charge: Charge) => ({
  calls: listCallItems(charge).length,
  searches: listExtraItems(charge).length,
  estimated: isEstimated(charge),
});

// biome-ignore lint/suspicious/noExplicitAny: chunks of any shape
const textOf = (events: readonly any[]) => events.map((each) => each.choices?.[0]?.delta?.content ?? '').join('');

describe('a model with a search tool', () => {
  test.each(sampleCases([false, true], 1))('costs no extra fee if it does not search (stream: %p)', async (stream) => {
    expect((await ask('tokens=4', { stream })).status).toBe(200);
    const { charge } = await charged();
    expect(counts(charge)).toEqual({ calls: 1, searches: 0, estimated: false });
    expect(await world.bill.fetchLines()).toHaveLength(1);
    const [record] = (await world.get('/queries/history', account)).body.data;
    expect(record.isOnline).toBe(false);
    await assertBooksAreTheBill();
  });

  test.each([
    ['the tool web_search', MODEL, TOOL],
    ['the older tool name', MODEL, { type: 'openrouter:web_search', parameters: { engine: 'exa', max_results: 5 } }],
    ['a model with a price for each call', FLAT, TOOL],
    ['a model with several endpoints', OPEN, TOOL],
    ['another engine for a model with native search', 'anthropic/claude-haiku-4.5', { ...TOOL, engine: 'exa' }],
  ])('receives the search results if it searches: %s', async (_, model, tool) => {
    const answer = await ask(SEARCH, { model, tools: [tool] });
    const [choice] = answer.body.choices;
    expect(choice.finish_reason).toBe('stop');
    expect(choice.message).toMatchObject({ role: 'assistant', content: expect.stringMatching(/^every coin/) });
    expect(choice.message.tool_calls).toBeUndefined();
    expect(choice.message.annotations).toHaveLength(5);
    const { charge } = await charged();
    expect(counts(charge)).toEqual({ calls: 2, searches: 1, estimated: false });
    expect(listExtraItems(charge)).toEqual([FEE]);
    expect(answer.body.usage.prompt_tokens).toBe(sumUsage(charge).input);
    expect(charge.attempts).toHaveLength(2);
    const rounds = (await world.bill.fetchLines()).filter((line) => line.model !== 'exa/search');
    expect(rounds[1]?.tokens.input).toBeGreaterThan((rounds[0]?.tokens.input ?? 0) + 200);
    const [record] = (await world.get('/queries/history', account)).body.data;
    expect(record).toMatchObject({ isOnline: true, price_in_usd: answer.body.usage.cost });
    await assertBooksAreTheBill();
  });

  test.each(sampleCases([false, true], 1, 1))(
    'searches at most three times by default (stream: %p)',
    async (stream) => {
      const answer = await ask(`${SEARCH} tool_times=9`, { stream });
      expect(answer.status).toBe(200);
      expect(counts((await charged()).charge)).toMatchObject({ calls: 4, searches: 3 });
      expect(await searchesBilled()).toBe(3);
      if (stream) expect(answer.events.at(-3).choices[0].finish_reason).toBe('stop');
      else expect(answer.body.choices[0].finish_reason).toBe('stop');
      await assertBooksAreTheBill();
    },
  );

  test('ends with finish reason length if the remaining output is below the minimum of the provider', async () => {
    const tools = [{ ...TOOL, engine: 'exa' }];
    const answer = await ask(SEARCH, { model: 'openai/gpt-5-codex', tools, max_completion_tokens: 20 });
    expect(answer.status).toBe(200);
    expect(answer.body.choices[0].finish_reason).toBe('length');
    const { type, charge } = await charged();
    expect([type, listExtraItems(charge)]).toEqual(['HoldSettled', [FEE]]);
    await assertBooksAreTheBill();
  });

  test('searches at most max_uses times', async () => {
    await ask(`${SEARCH} tool_times=9`, { tools: [{ ...TOOL, parameters: { max_uses: 1 } }] });
    expect(counts((await charged()).charge)).toMatchObject({ calls: 2, searches: 1 });
  });

  test.each([
    ['of the search', { tool_choice: { type: 'web_search' } }, 1],
    ['of any tool if there is no other tool', { tool_choice: 'required' }, 1],
    ['of no tool', { tool_choice: 'none' }, 0],
  ])('respects a tool choice %s', async (_, more, searches) => {
    expect((await ask('tokens=4', more)).status).toBe(200);
    expect(await searchesBilled()).toBe(searches);
    await assertBooksAreTheBill();
  });

  test('returns a call of a function of the client to the client', async () => {
    const answer = await ask('tool=book', { tools: [TOOL, BOOK] });
    const [{ message, finish_reason }] = answer.body.choices;
    expect([finish_reason, message.tool_calls[0].function.name]).toEqual(['tool_calls', 'book']);
    expect(counts((await charged()).charge)).toMatchObject({ calls: 1 });
  });

  test('searches even if a function of the client has the name of the search tool', async () => {
    const own = { type: 'function', function: { ...BOOK.function, name: 'web_search' } };
    const answer = await ask('tool=web_search_2', { tools: [TOOL, own] });
    expect(answer.body.choices[0].message.annotations).toHaveLength(5);
    const other = await world.sendChat(account, 'tool=web_search', { model: MODEL, tools: [TOOL, own] });
    expect(other.body.choices[0].message.tool_calls[0].function.name).toBe('web_search');
  });

  test.each(sampleCases([false, true], 1))(
    'receives its reasoning together with the search results (stream: %p)',
    async (stream) => {
      const model = 'anthropic/claude-haiku-4.5';
      const more = {
        model,
        stream,
        tools: [{ ...TOOL, engine: 'exa' }],
        reasoning: { max_tokens: 1_024 },
        max_tokens: 4_000,
      };
      expect((await ask(`${SEARCH} reasoning=8`, more)).status).toBe(200);
      // The model continues to reason only if it receives its earlier reasoning.
      const { charge } = await charged();
      expect(counts(charge)).toMatchObject({ calls: 2, searches: 1 });
      expect(sumUsage(charge).reasoning).toBe(16);
      await assertBooksAreTheBill();
    },
  );

  test('has one output limit for all rounds together', async () => {
    const answer = await ask(SEARCH, { max_tokens: 12 });
    const { output } = sumUsage((await charged()).charge);
    expect(output).toBe(12);
    expect(answer.body.choices[0].finish_reason).toBe('length');
    await assertBooksAreTheBill();
  });

  test('causes a search before the first call if the model does not support tools', async () => {
    const answer = await ask('tokens=4', { model: 'test/toolless', tools: [TOOL, BOOK], tool_choice: 'required' });
    expect(answer.body.choices[0].message.annotations).toHaveLength(5);
    expect(listExtraItems((await charged()).charge)).toEqual([FEE]);
    await assertBooksAreTheBill();
  });

  test('does not search and returns no error if the model is part of the free tier', async () => {
    const settings = { tools: [TOOL], tool_choice: 'required', plugins: [{ id: 'web', max_results: 'many' }] };
    const answer = await ask('tokens=4', { model: 'test/free:online', ...settings });
    expect([answer.status, answer.body.usage.cost]).toEqual([200, 0]);
    const [record] = (await world.get('/queries/history', account)).body.data;
    expect(record.isOnline).toBe(false);
    expect(await searchesBilled()).toBe(0);
  });
});

describe('a stream with searches', () => {
  test('has one role, one end and one usage, which is the sum of all rounds', async () => {
    const { events } = await ask(`${SEARCH} tool_times=2`, { stream: true });
    expect(events.at(-1)).toBe('[DONE]');
    const chunks = events.slice(0, -1);
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }: { delta: object }) => delta));
    expect(deltas.filter((delta) => 'role' in delta)).toHaveLength(1);
    expect(deltas.filter((delta) => 'tool_calls' in delta)).toHaveLength(0);
    expect(deltas.filter((delta) => 'annotations' in delta)).toHaveLength(2);
    const reasons = chunks.flatMap(({ choices }) =>
      choices.map((each: { finish_reason: unknown }) => each.finish_reason),
    );
    expect(reasons.filter((reason) => reason !== null)).toEqual(['stop']);
    expect(new Set(chunks.map(({ id, model }) => `${id} ${model}`)).size).toBe(1);
    const usages = chunks.flatMap(({ usage }) => (usage ? [usage] : []));
    const { charge } = await charged();
    expect(usages).toMatchObject([
      { prompt_tokens: sumUsage(charge).input, completion_tokens: sumUsage(charge).output },
    ]);
    expect(textOf(chunks)).toMatch(/^every coin/);
    expect(counts(charge)).toMatchObject({ calls: 3, searches: 2 });
    expect(listExtraItems(charge)).toEqual([FEE, { ...FEE, usage: { search: 1 }, price: '0' }]);
    expect(usages[0].cost_details).toMatchObject({ web_search_cost: 0.02 });
    const { cost, cost_details: parts } = usages[0];
    const sum = parts.upstream_inference_cost + parts.web_search_cost + parts.margin;
    expect(sum).toBeCloseTo(cost, 12);
    await assertBooksAreTheBill();
  });

  test('is read by OpenAI’s client', async () => {
    const client = new OpenAI({ baseURL: `${world.api}/v1`, apiKey: account.apiKey, maxRetries: 0 });
    const stream = client.chat.completions.stream({
      model: MODEL,
      messages: [{ role: 'user', content: `What is new? [[sandbox ${SEARCH}]]` }],
      // The types of OpenAI's chat do not have this tool.
      tools: [TOOL as never],
    });
    const chat = await stream.finalChatCompletion();
    expect(chat.choices).toMatchObject([{ finish_reason: 'stop', message: { role: 'assistant' } }]);
    expect(chat.choices[0]?.message.tool_calls ?? []).toEqual([]);
    expect((await stream.totalUsage()).prompt_tokens).toBe(sumUsage((await charged()).charge).input);
  });
});

describe('a failure during searches', () => {
  const failing = `${SEARCH} text=${JSON.stringify(JSON.stringify({ query: '[[sandbox fault=500 at=exa]]' }))}`;

  test.each(sampleCases([false, true], 1, 1))(
    'adds no fee if a search fails, and the model is called again (stream: %p)',
    async (stream) => {
      expect((await ask(failing, { stream })).status).toBe(200);
      expect(counts((await charged()).charge)).toMatchObject({ calls: 2, searches: 0 });
      await assertBooksAreTheBill();
    },
  );

  test('returns an error if the provider fails after a search, and the operator absorbs the cost', async () => {
    const balance = await world.fetchBalance(account);
    expect((await ask(`${SEARCH} fault=500 fault_round=2`)).status).toBe(502);
    const { type, charge } = await charged();
    expect([type, listExtraItems(charge), isEstimated(charge)]).toEqual(['ChargeAbsorbed', [FEE], false]);
    expect(await world.fetchBalance(account)).toBe(balance);
    await assertBooksAreTheBill();
  });

  test('costs nothing if a stream fails after a search and before any text; the operator absorbs the cost', async () => {
    const balance = await world.fetchBalance(account);
    const { events, isComplete } = await ask(`${SEARCH} fault=500 fault_round=2`, { stream: true });
    expect(events.filter((event) => event.error)).toHaveLength(1);
    expect([isComplete, events.at(-1).usage.cost]).toEqual([false, 0]);
    expect((await charged()).type).toBe('ChargeAbsorbed');
    expect(await world.fetchBalance(account)).toBe(balance);
    await assertBooksAreTheBill();
  });

  test('leads to a charge for what was delivered if a stream ends early in its text', async () => {
    const { events } = await ask(`${SEARCH} fault=cut fault_round=2`, { stream: true });
    expect(textOf(events)).toMatch(/^every coin/);
    const { type, charge } = await charged();
    expect([type, charge.errorCode]).toEqual(['HoldSettled', 'upstream_error']);
    expect(counts(charge)).toEqual({ calls: 2, searches: 1, estimated: true });
  });

  test('costs nothing if the first round ends early', async () => {
    const balance = await world.fetchBalance(account);
    await ask(`${SEARCH} fault=cut fault_round=1`, { stream: true });
    expect(await charged()).toMatchObject({ type: 'ChargeAbsorbed', charge: { items: [{ estimated: true }] } });
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test('leads to an estimated charge for both rounds if the provider reports no usage', async () => {
    await ask(`${SEARCH} fault=no_usage`);
    const { charge } = await charged();
    expect(counts(charge)).toMatchObject({ calls: 2, estimated: true });
    expect(sumUsage(charge).input).toBeGreaterThan(300);
  });
});

describe('rounds that are aborted', () => {
  /** Returns the response of a new gateway, and closes the gateway once `reached` has arrived, or at the end. */
  async function cutShort(settings: object, directive: string, reached?: string) {
    const gateway = await world.startGateway(settings);
    const response = await fetch(`${gateway.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
      body: JSON.stringify({
        model: MODEL,
        stream: true,
        tools: [TOOL],
        messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }],
      }),
    });
    let closed: Promise<void> | undefined;
    const { text } = await readResponse(response, (received) => {
      if (reached !== undefined && received.includes(reached)) closed ??= gateway.close();
    });
    await (closed ?? gateway.close());
    return text;
  }

  test('are charged for what was delivered if the gateway shuts down', async () => {
    const text = await cutShort({ shutdownTimeoutMs: 0 }, `${SEARCH} chunks=16 chunk_delay=300`, '"every ');
    expect(text).toContain('The gateway is shutting down');
    const { type, charge } = await charged();
    expect([type, charge.errorCode]).toEqual(['HoldSettled', 'shutdown']);
    expect(counts(charge)).toEqual({ calls: 2, searches: 1, estimated: true });
    expect(sumUsage(charge).output).toBeLessThan(40);
  });

  test('are absorbed by the operator if they time out before any text', async () => {
    const balance = await world.fetchBalance(account);
    const before = world.traffic.requests.length;
    const hasSearched = () => world.traffic.requests.slice(before).some((request) => request.includes('/exa'));
    const query = JSON.stringify(JSON.stringify({ query: '[[sandbox fault=timeout at=exa]]' }));
    const text = await timeOut(
      world,
      () => cutShort({}, `${SEARCH} text=${query}`),
      () => world.traffic.openCallCount > 0 && hasSearched(),
    );
    expect(text).toContain('The response took too long');
    const { type, charge } = await charged();
    expect([type, charge.errorCode]).toEqual(['ChargeAbsorbed', 'timeout']);
    expect(counts(charge)).toMatchObject({ searches: 0, estimated: false });
    expect(await world.fetchBalance(account)).toBe(balance);
  });
});

describe('a client that disconnects during a search', () => {
  const LATENCY_MS = 150;
  const query = JSON.stringify({ query: `[[sandbox latency=${LATENCY_MS} at=exa]]` });
  const slow = `${SEARCH} text=${JSON.stringify(query)}`;
  const request = (more: object = {}) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}`, ...more },
    body: JSON.stringify({
      model: MODEL,
      stream: true,
      tools: [TOOL],
      messages: [{ role: 'user', content: `[[sandbox ${slow}]]` }],
    }),
  });

  /** Disconnects after the first event, when the search has started or is about to start. */
  async function leave(more?: object): Promise<void> {
    const response = await fetch(`${world.api}/v1/chat/completions`, request(more));
    for await (const _ of response.body ?? []) break;
  }

  test('pays for what was used, and no further call is started', async () => {
    const drain = extendTimeouts(world.foundation.settings.drainTimeoutMs);
    const search = extendDelay(LATENCY_MS);
    await leave();
    await drain.started; // the gateway has noticed the disconnect
    search.end();
    const { charge, type } = await charged();
    drain.end();
    expect([type, charge.errorCode]).toEqual(['HoldSettled', 'client_disconnected']);
    expect(counts(charge)).toMatchObject({ calls: 1 });
    await assertBooksAreTheBill();
  });

  test('receives the complete response if it repeats the request with the same Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'again' };
    await leave(headers);
    const { charge } = await charged();
    expect(counts(charge)).toMatchObject({ calls: 2, searches: 1 });
    expect(charge.errorCode).toBeUndefined();
    const again = await fetch(`${world.api}/v1/chat/completions`, request(headers));
    const text = await again.text();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(text.match(/"finish_reason":"stop"/g)).toHaveLength(1);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    await assertBooksAreTheBill();
  });
});

describe('the hold for searches', () => {
  /** Creates a key with a spending limit, because a top-up must not be as small as this amount. */
  async function keyWith(usd: number): Promise<TestAccount> {
    const headers = { 'x-credit-id': account.creditId };
    const { body } = await world.send('POST', '/keys', { headers, body: { name: `${usd}`, usage_limit_usd: usd } });
    return { creditId: account.creditId, apiKey: body.data.api_key };
  }

  test('may cover only a response without a search; then a required search is rejected with 402', async () => {
    const key = await keyWith(0.01);
    const more = { model: MODEL, tools: [TOOL], max_tokens: 64 };
    expect((await world.sendChat(key, '', { ...more, plugins: [{ id: 'web' }] })).status).toBe(402);
    expect((await world.sendChat(key, '', { ...more, tool_choice: TOOL })).status).toBe(402);
    expect((await world.sendChat(key, 'tokens=4', more)).status).toBe(200);
    expect(listExtraItems((await charged()).charge)).toEqual([]);
    await assertBooksAreTheBill();
  });

  test('is extended for searches of concurrent requests that share a balance', async () => {
    account = await world.createAccount(1.05);
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, i) => ask(`${SEARCH} tool_times=2 id=${i}`, { stream: i % 2 === 0 })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
    const facts = await world.listEvents(account);
    const searches = facts.flatMap(({ type, data }) =>
      type === 'HoldSettled' ? [data.charge.items.filter(({ beside }) => beside).length] : [],
    );
    expect(searches).toEqual(Array(16).fill(2));
    expect(facts.some(({ type }) => type === 'HoldExtended')).toBe(true);
  });

  test('ends the searches and not the response when the money is used up', async () => {
    const more = { model: MODEL, tools: [TOOL], max_tokens: 500 };
    const answer = await world.sendChat(await keyWith(0.0265), `${SEARCH} tool_times=3`, more);
    expect([answer.status, answer.body.choices[0].finish_reason]).toEqual([200, 'stop']);
    expect(counts((await charged()).charge)).toMatchObject({ calls: 2, searches: 1 });
    expect(answer.body.usage.cost).toBeLessThanOrEqual(0.0265);
    await assertBooksAreTheBill();
  });

  test('covers the first search, but less than three searches', async () => {
    await ask(SEARCH, { max_tokens: 100 });
    const held = (await world.listEvents(account)).find(({ type }) => type === 'FundsHeld');
    if (held?.type !== 'FundsHeld') throw new Error('nothing was held');
    expect(BigInt(held.data.amount)).toBeGreaterThan(BigInt(FEE.price));
    expect(BigInt(held.data.amount)).toBeLessThan(3n * BigInt(FEE.price));
  });
});

test.each([
  ['too many results', { max_results: 100 }],
  ['zero uses', { max_uses: 0 }],
  ['an unknown engine', { engine: 'altavista' }],
  ['native search with a model that has none', { engine: 'native' }],
  ['domains that are not a list', { filters: { allowed_domains: 'a.example' } }],
])('rejects %s without a call to a provider', async (_, options) => {
  expect((await ask('', { tools: [{ ...TOOL, ...options }] })).status).toBe(400);
  expect(await world.bill.fetchLines()).toHaveLength(0);
});

test.each([
  ['anthropic/', 'web_search_anthropic'],
  ['openai/gpt-5', 'web_search_openai'],
])('finds one native search fee for all models %s… in the shipped catalogue', async (prefix, fee) => {
  const read = async (file: string) => JSON.parse(await readFile(path.join(getShippedCatalogueDir(), file), 'utf8'));
  const models = (await read('models.json')) as readonly { id: string; endpoints: readonly { searchFee?: string }[] }[];
  const family = models.filter(({ id }) => id.startsWith(prefix));
  const fees = family.flatMap(({ endpoints }) => endpoints.map(({ searchFee }) => searchFee));
  expect(new Set(fees)).toEqual(new Set([fee]));
});
