import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { formatTotalCost, listCharges, listExtraItems, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const TOOL = { type: 'web_search' };
const WEB = { plugins: [{ id: 'web' }] };
const SEARCH = 'tool=web_search';
/** Returns the charge item of `times` searches by Anthropic, whose invoice lists them under the id of the response. */
const searched = (times: number) => ({
  of: 'web_search_anthropic',
  provider: 'anthropic',
  creditor: 'anthropic',
  beside: true,
  estimated: false,
  vendorId: expect.stringMatching(/^msg_/),
  usage: { search: times, request: 1 },
  price: String(times * 10_550_000_000),
  cost: String(times * 10_000_000_000),
});

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(2);
  await world.bill.clear();
});

const ask = (directive: string, more: object = {}) => world.sendChat(account, directive, { model: CLAUDE, ...more });

const charges = async () => listCharges(await world.listEvents(account));

/** Returns the items of the first charge except that of its model. */
async function beside() {
  const [charge] = await charges();
  return charge ? listExtraItems(charge) : undefined;
}

async function assertBooksAreTheBill(): Promise<void> {
  expect(formatTotalCost(await charges())).toBe((await world.bill.fetchTotal()).total_usd);
}

const isOnline = async () => (await world.get('/queries/history', account)).body.data[0].isOnline;

describe('a model with native search', () => {
  test.each([
    ['the plugin', WEB, 'tokens=4', 1],
    [':online', { model: `${CLAUDE}:online` }, 'tokens=4', 1],
    ['the tool, if the model decides to search', { tools: [TOOL] }, `${SEARCH} tool_times=2 text="Found it"`, 2],
    ['the tool with a tool choice', { tools: [TOOL], tool_choice: TOOL }, 'tokens=4', 1],
    ['the native engine', { tools: [{ ...TOOL, parameters: { engine: 'native' } }] }, `${SEARCH} tool_times=9`, 3],
    ['max_uses', { tools: [{ ...TOOL, max_uses: 1 }] }, `${SEARCH} tool_times=9`, 1],
    ['allowed domains', { tools: [{ ...TOOL, filters: { allowed_domains: ['a.example'] } }] }, SEARCH, 1],
  ])('searches with %s for the fee of its provider', async (_, more, directive, searches) => {
    const answer = await ask(directive, more);
    expect(answer.status).toBe(200);
    const [{ message, finish_reason }] = answer.body.choices;
    expect(finish_reason).toBe('stop');
    expect(message.annotations).toHaveLength(searches);
    expect(message.annotations[0].url_citation).toEqual({
      url: 'https://site1.example/1',
      title: 'Page 1',
      content: expect.any(String),
      start_index: 0,
      end_index: message.content.length,
    });
    expect(await beside()).toEqual([searched(searches)]);
    expect((await charges())[0]?.items[0]).toMatchObject({ of: CLAUDE, creditor: 'anthropic', estimated: false });
    expect(await isOnline()).toBe(true);
    await assertBooksAreTheBill();
  });

  test.each([false, true])('costs no fee if it does not search (stream: %p)', async (stream) => {
    await ask('tokens=4', { tools: [TOOL], stream });
    expect(await beside()).toEqual([]);
    expect(await isOnline()).toBe(false);
    await assertBooksAreTheBill();
  });

  test.each([
    ['', 2],
    ['fault=cached', 2],
  ])('streams its text and sources: %p', async (fault, searches) => {
    const { events } = await ask(`${SEARCH} tool_times=2 ${fault}`, { tools: [TOOL], stream: true });
    const deltas = events.flatMap((event) => event.choices ?? []).map(({ delta }) => delta);
    expect(deltas.filter((delta) => 'annotations' in delta)).toHaveLength(1);
    expect(deltas.filter((delta) => 'tool_calls' in delta)).toHaveLength(0);
    expect(deltas.map(({ content = '' }) => content).join('')).toMatch(/^every coin/);
    expect(await beside()).toEqual([searched(searches)]);
    await assertBooksAreTheBill();
  });

  test('costs the fee for the observed searches if the provider reports no usage', async () => {
    await ask(`${SEARCH} tool_times=2 fault=no_usage`, { tools: [TOOL], stream: true });
    expect((await charges())[0]?.items).toMatchObject([{ estimated: true }, searched(2)]);
  });

  test('costs no fee if the provider reports no searches, and an estimate of its text if it reports no tokens', async () => {
    await ask(`${SEARCH} tool_times=2 fault=zero`, { tools: [TOOL], stream: true });
    expect((await charges())[0]?.items).toMatchObject([{ of: CLAUDE, estimated: true }]);
  });

  test('costs no fee for a failed search', async () => {
    expect((await ask(`${SEARCH} fault=500 at=web_search`, { tools: [TOOL] })).status).toBe(200);
    expect(await beside()).toEqual([]);
    await assertBooksAreTheBill();
  });

  test('reasons on request, also together with the plugin', async () => {
    const answer = await ask('tokens=40 reasoning=8', { ...WEB, reasoning: { effort: 'high' }, max_tokens: 4_000 });
    expect([answer.status, answer.body.usage.completion_tokens_details.reasoning_tokens]).toEqual([200, 8]);
    await assertBooksAreTheBill();
  });

  test('supports the plugin with and without adaptive reasoning', async () => {
    const more = { model: 'anthropic/claude-opus-4.7', max_tokens: 2_000 };
    const forced = await ask('tokens=4', { ...more, ...WEB });
    expect(forced.body.choices[0].message.annotations).toHaveLength(1);
    const thinking = await ask('tokens=40 reasoning=8', { ...more, ...WEB, reasoning: { effort: 'high' } });
    expect(thinking.body.usage.completion_tokens_details.reasoning_tokens).toBe(8);
    await assertBooksAreTheBill();
  });

  test('does not search natively if the engine is exa', async () => {
    await ask('tokens=4', { plugins: [{ id: 'web', engine: 'exa' }] });
    expect(await beside()).toMatchObject([{ of: 'web_search' }]);
    await assertBooksAreTheBill();
  });

  test('does not search natively if a function of the client has the name of its search tool', async () => {
    const own = { type: 'function', function: { name: 'web_search', parameters: { type: 'object', properties: {} } } };
    await ask('tool=web_search_2', { tools: [TOOL, own] });
    expect(await beside()).toMatchObject([{ of: 'web_search' }]);
    await assertBooksAreTheBill();
  });

  test('also calls functions of the client', async () => {
    const book = { type: 'function', function: { name: 'book', parameters: { type: 'object', properties: {} } } };
    const answer = await ask('tool=book', { tools: [TOOL, book] });
    expect(answer.body.choices[0]).toMatchObject({ finish_reason: 'tool_calls' });
    expect(await beside()).toEqual([]);
  });

  test('rejects domains to include together with domains to exclude', async () => {
    const filters = { include_domains: ['a.example'], exclude_domains: ['b.example'] };
    expect((await ask('', { plugins: [{ id: 'web', ...filters }] })).status).toBe(400);
    expect(await charges()).toEqual([]);
  });
});

test('returns an error if the provider fails after searches, and the operator absorbs the observed usage', async () => {
  const balance = await world.fetchBalance(account);
  const { events } = await ask(`${SEARCH} fault=malformed`, { tools: [TOOL], stream: true });
  expect(events.some((event) => event.error)).toBe(true);
  expect(await world.fetchBalance(account)).toBe(balance);
  expect((await charges())[0]?.items).toMatchObject([{ estimated: true }, searched(1)]);
});

test('allows only as many searches as the hold covers', async () => {
  const headers = { 'x-credit-id': account.creditId };
  const { body } = await world.send('POST', '/keys', { headers, body: { name: 'poor', usage_limit_usd: 0.05 } });
  const key = { creditId: account.creditId, apiKey: body.data.api_key };
  const more = { model: CLAUDE, tools: [TOOL], max_tokens: 64 };
  const answer = await world.sendChat(key, `${SEARCH} tool_times=9`, more);
  expect(answer.status).toBe(200);
  expect(await beside()).toEqual([searched(1)]);
  await assertBooksAreTheBill();
});

test('streams a chat with native search to OpenAI’s client', async () => {
  const client = new OpenAI({ baseURL: `${world.api}/v1`, apiKey: account.apiKey, maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: `What is new? [[sandbox ${SEARCH}]]` }];
  const stream = client.chat.completions.stream({ model: CLAUDE, messages, tools: [TOOL as never] });
  const chat = await stream.finalChatCompletion();
  expect(chat.choices).toMatchObject([{ finish_reason: 'stop', message: { role: 'assistant' } }]);
  await assertBooksAreTheBill();
});
