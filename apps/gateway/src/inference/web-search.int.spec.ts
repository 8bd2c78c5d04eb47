import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { formatUsd, type PicoUsd, parseUsd } from '#kernel';
import {
  createTestEndpoint,
  createTestModel,
  extendTimeouts,
  listCharges,
  listExtraItems,
  sampleCases,
  type TestAccount,
  TestWorld,
} from '#testing';

const MODEL = 'openai/gpt-4.1-mini';
const OPEN = 'openai/gpt-oss-120b';
/** A model of the zdr tier whose cheaper endpoint retains data. */
const KEEPING = 'test/keeping';
const MODELS = [
  createTestModel(
    KEEPING,
    [
      createTestEndpoint('Keeper', 'openai', { usdPerMillionTokens: { input: '0.01', output: '0.01' } }),
      createTestEndpoint('Forgetful', 'openai', { zdr: true }),
    ],
    { privacy: 'zdr' },
  ),
];
/** The charge item of a search by Exa. */
const SEARCHED = {
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

const ask = (more: object, directive = 'tokens=4') => world.sendChat(account, directive, { model: MODEL, ...more });
const PREVIEW = { type: 'web_search_preview' };
const web = (more: object = {}) => ({ plugins: [{ id: 'web', ...more }] });

const charges = async () => listCharges(await world.listEvents(account));

/** Returns the items of a charge except that of its model. */
async function beside(nr = 0) {
  const charge = (await charges())[nr];
  return charge && listExtraItems(charge);
}

describe('a chat with web search', () => {
  test.each([
    ['the plugin', web()],
    ['the tool with a required call', { tools: [{ type: 'web_search' }], tool_choice: 'required' }],
    ['OpenAI’s option', { web_search_options: { search_context_size: 'medium' } }],
    ['OpenAI’s older tool with a required call', { tools: [PREVIEW], tool_choice: PREVIEW }],
    [':online', { model: `${MODEL}:online` }],
    [':online after an alias', { model: 'gpt-4.1-mini:online' }],
  ])('has sources, a fee and a mark in the history if the search is requested by %s', async (_, more) => {
    const answer = await ask(more);
    expect(answer.status).toBe(200);
    const [choice] = answer.body.choices;
    expect(choice.message.annotations).toHaveLength(5);
    expect(choice.message.annotations[0]).toEqual({
      type: 'url_citation',
      url_citation: expect.objectContaining({ url: expect.stringMatching(/^https:/), title: 'Page 1' }),
    });
    const [charge] = await charges();
    expect(await beside()).toEqual([SEARCHED]);
    expect(answer.body.usage.cost).toBeGreaterThan(0.02);
    expect(formatUsd(BigInt(charge?.cost ?? 0) as PicoUsd)).toBe((await world.bill.fetchTotal()).total_usd);
    const history = await world.get('/queries/history', account);
    expect(history.body.data[0]).toMatchObject({ isOnline: true, model: MODEL });
  });

  test('adds the search results to the input of the model', async () => {
    await ask({});
    await ask(web());
    await ask(web({ max_results: 1 }));
    const inputs = (await world.bill.fetchLines())
      .filter(({ model }) => model === 'gpt-4.1-mini')
      .map(({ tokens }) => tokens.input);
    expect(inputs[1]).toBeGreaterThan((inputs[2] as number) + 100);
    expect(inputs[2]).toBeGreaterThan((inputs[0] as number) + 30);
  });

  test('streams the sources before the text', async () => {
    const client = new OpenAI({ baseURL: `${world.api}/v1`, apiKey: account.apiKey, maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model: `${MODEL}:online`,
      messages: [{ role: 'user', content: 'What is a ledger?' }],
      stream: true,
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks[0]?.choices[0]?.delta).toMatchObject({ role: 'assistant' });
    expect(chunks[1]?.choices[0]?.delta).toMatchObject({ annotations: expect.arrayContaining([expect.anything()]) });
    expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set([MODEL]));
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.filter(({ choices }) => choices[0]?.delta.role)).toHaveLength(1);
    expect(await beside()).toEqual([SEARCHED]);
  });

  test('searches only the requested domains', async () => {
    const answer = await ask(web({ max_results: 2, include_domains: ['books.example'] }));
    const urls = answer.body.choices[0].message.annotations.map(
      ({ url_citation }: { url_citation: { url: string } }) => url_citation.url,
    );
    expect(urls).toEqual([expect.stringContaining('//books.example/'), expect.stringContaining('//books.example/')]);
  });

  test('forwards the other tools of the caller', async () => {
    const tool = { type: 'function', function: { name: 'book', parameters: { type: 'object', properties: {} } } };
    const answer = await ask({ tools: [{ type: 'web_search' }, tool] }, 'tool=book');
    expect(answer.body.choices[0].message.tool_calls[0].function.name).toBe('book');
  });

  test('uses the native search of a model unless another engine is requested', async () => {
    await ask({ model: 'perplexity/sonar', ...web() });
    expect(await beside()).toEqual([]);
    await ask({ model: 'perplexity/sonar', ...web({ engine: 'exa' }) });
    expect(await beside(1)).toEqual([SEARCHED]);
    const history = await world.get('/queries/history', account);
    expect(history.body.data.map(({ isOnline }: { isOnline: boolean }) => isOnline)).toEqual([true, true]);
  });

  test.each(['openai/gpt-4o', 'openai/gpt-4.1', 'openai/o3'])(
    'uses the native search of %s only on request',
    async (model) => {
      await ask({ model, ...web() });
      expect(await beside()).toEqual([SEARCHED]);
      const native = await ask({ model, ...web({ engine: 'native' }) }, 'tool=web_search');
      expect(native.status).toBe(200);
      expect(await beside(1)).toMatchObject([{ of: 'web_search_openai', usage: { search: 1 }, price: '10550000000' }]);
      expect((await world.bill.fetchLines()).filter((line) => line.model === 'exa/search')).toHaveLength(1);
    },
  );

  test('is made for each model with zdr that has an endpoint that retains nothing', async () => {
    const models: readonly { id: string; privacyLevel: string }[] = (await world.get('/v1/models')).body.data;
    const zdr = models.filter(({ privacyLevel }) => privacyLevel === 'zdr').map(({ id }) => id);
    expect(zdr.length).toBeGreaterThan(10);
    for (const [nr, model] of sampleCases(zdr, 4).entries()) {
      const { status } = await ask({ model, provider: { zdr: true }, ...web() });
      expect([model, status, await beside(nr)]).toEqual([model, 200, [SEARCHED]]);
    }
    const { status, body } = await ask({ model: MODEL, provider: { zdr: true }, ...web() });
    expect([status, body.error.param]).toEqual([404, 'provider']);
  });

  test('uses only endpoints that retain nothing for models of the zdr tier in the web application', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'x-query-source': 'ui' };
    const asUi = (body: object) =>
      world.send('POST', '/v1/chat/completions', {
        body: { messages: [{ role: 'user', content: '[[sandbox tokens=2]]' }], ...body },
        headers,
      });
    expect((await asUi({ model: 'deepseek/deepseek-r1', provider: { only: ['deepseek'] } })).status).toBe(200);
    expect((await asUi({ model: OPEN })).status).toBe(200);
    expect((await asUi({ model: OPEN, ...web() })).status).toBe(200);
    expect((await asUi({ model: MODEL, ...web() })).status).toBe(200);
    expect((await asUi({ model: KEEPING, provider: { only: ['keeper'] } })).status).toBe(404);
    expect((await asUi({ model: KEEPING })).body.provider).toBe('Forgetful');
    expect((await ask({ model: KEEPING })).body.provider).toBe('Keeper');
  });

  test('does not search with a disabled plugin', async () => {
    await ask(web({ enabled: false }));
    expect(await beside()).toEqual([]);
  });
});

describe('the charge for a search', () => {
  test('is held together with the price of the search results as input', async () => {
    const poor = await world.createAccount(0.105);
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const body = { model: 'anthropic/claude-opus-4.5', max_tokens: 3_700, messages };
    expect((await world.post('/v1/chat/completions', { ...body, ...web({ engine: 'exa' }) }, poor)).status).toBe(402);
    expect((await world.bill.fetchTotal()).lines).toBe(0);
    expect((await world.post('/v1/chat/completions', body, poor)).status).toBe(200);
  });

  test('is not made if the search fails', async () => {
    const balance = await world.fetchBalance(account);
    for (const fault of ['500', 'refuse', 'malformed']) {
      const answer = await ask(web(), `fault=${fault} at=exa`);
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(answer.body).toMatchObject({ status: 'error' });
    }
    expect(await world.fetchBalance(account)).toBe(balance);
    expect(await charges()).toEqual([]);
  });

  test('is absorbed by the operator if the model fails after the search', async () => {
    const balance = await world.fetchBalance(account);
    expect((await ask(web(), 'fault=500 at=openai')).status).toBe(502);
    expect(await world.fetchBalance(account)).toBe(balance);
    const [absorbed] = await charges();
    expect(absorbed).toMatchObject({ cost: '7000000000', items: [SEARCHED] });
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.007');
  });

  test('is made once per idempotency key if the provider rejects the request after the search', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    for (const _ of ['asked', 'asked again'])
      expect((await asked(world.api, 'fault=400 at=openai', { headers })).status).toBe(400);
    expect(await world.fetchBalance(account)).toBe('0.98');
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.007');
    expect(await charges()).toMatchObject([{ items: [SEARCHED], errorCode: 'invalid_request' }]);
    const history = await world.get('/queries/history', account);
    expect(history.body.data[0]).toMatchObject({ error_code: 'invalid_request', price_in_usd: 0.02 });
  });

  test('is made if the client disconnects before the model responds', async () => {
    const drain = extendTimeouts(world.foundation.settings.drainTimeoutMs);
    const leaving = new AbortController();
    const left = asked(world.api, 'latency=60000', { signal: leaving.signal }).catch(() => 'left');
    await world.waitUntil(async () => (await world.bill.fetchTotal()).lines === 1 && world.traffic.openCallCount > 0);
    leaving.abort();
    expect(await left).toBe('left');
    await drain.started;
    drain.end();
    await world.waitUntil(async () => (await charges()).length === 1);
    const called = { of: MODEL, estimated: true, usage: { input: expect.any(Number), request: 1 } };
    expect(await charges()).toMatchObject([{ items: [SEARCHED, called], errorCode: 'client_disconnected' }]);
  });

  test('is absorbed up to a limit per account and hour for all gateways together; then requests are rejected', async () => {
    const limit = { absorbedPerHour: parseUsd('0.007') };
    const apis = await Promise.all([world.addGateway(limit), world.addGateway(limit)]);
    const failing = async (api: string) => {
      const answers = await Promise.all(['one', 'another'].map(() => asked(api, 'fault=500 at=openai')));
      return answers.map(({ status, headers }) => [status, Number(headers.get('retry-after')) > 3_500]);
    };
    const outcomes = [];
    for (const api of apis) outcomes.push(...(await failing(api)));
    // Requests in progress when the limit is reached may exceed it by at most the money that they hold.
    expect(outcomes).toEqual([
      [502, false],
      [502, false],
      [429, true],
      [429, true],
    ]);
    expect((await world.bill.fetchTotal()).total_usd).toBe('0.014');
  });
});

function asked(api: string, directive: string, more: RequestInit = {}): Promise<Response> {
  const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}`, ...more.headers };
  const body = JSON.stringify({ model: MODEL, messages, ...web() });
  return fetch(`${api}/v1/chat/completions`, { ...more, method: 'POST', headers, body });
}

test.each([
  ['plugins that are not a list', { plugins: 'web' }],
  ['too many results', web({ max_results: 100 })],
  ['a number of results that is not a number', web({ max_results: 'many' })],
  ['an unknown engine', web({ engine: 'altavista' })],
  ['native search with a model that has none', web({ engine: 'native' })],
  ['domains that are not a list', web({ include_domains: 'a.example' })],
])('rejects %s without a search', async (_, more) => {
  expect((await ask(more)).status).toBe(400);
  expect((await world.bill.fetchTotal()).lines).toBe(0);
});
