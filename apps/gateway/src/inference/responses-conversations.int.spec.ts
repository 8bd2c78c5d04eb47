/** Input items of a conversation, their number of tokens, and compaction. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { openTappedWorld, type TappedWorld, type TestAccount, type TestWorld, type Wiretap } from '#testing';

const MODEL = 'openai/gpt-5-mini';
const CLAUDE = 'anthropic/claude-haiku-4.5';
const TOOL = { type: 'function' as const, name: 'f', parameters: { type: 'object', properties: {} }, strict: false };

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ tap, world } = tapped);
  account = await world.createAccount(105);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0, logLevel: 'off' });
});
afterAll(() => tapped.close());

const ask = (body: object) => world.post('/v1/responses', { model: MODEL, ...body }, account);
const itemsOf = (id: string, query = '') => world.get(`/v1/responses/${id}/input_items${query}`, account);
// biome-ignore lint/suspicious/noExplicitAny: items of any shape
type Items = readonly any[];

describe('the input items of a stored response', () => {
  test('are listed newest first, including those of continued responses', async () => {
    const first = await ask({ input: 'One' });
    const second = await ask({ input: [{ role: 'user', content: 'Two' }], previous_response_id: first.body.id });
    const { data, object, has_more, first_id, last_id } = (await itemsOf(second.body.id)).body;
    expect([object, has_more]).toEqual(['list', false]);
    expect([first_id, last_id]).toEqual([data[0].id, data[2].id]);
    const user = (text: string) => ({
      type: 'message',
      id: expect.stringMatching(/^msg_/),
      status: 'completed',
      role: 'user',
      content: [{ type: 'input_text', text }],
    });
    expect(data).toEqual([user('Two'), first.body.output.at(-1), user('One')]);
  });

  test('are read page by page by OpenAI’s client', async () => {
    const input = Array.from({ length: 5 }, (_, i) => ({ role: 'user' as const, content: `${i}` }));
    const { id } = await client.responses.create({ model: MODEL, input });
    const texts: unknown[] = [];
    for await (const item of client.responses.inputItems.list(id, { limit: 2, order: 'asc' })) {
      texts.push((item as OpenAI.Responses.ResponseInputMessageItem).content[0]);
    }
    expect(texts).toEqual(input.map(({ content: text }) => ({ type: 'input_text', text })));
  });

  test('are not visible to other accounts, and an invalid query is rejected', async () => {
    const { id } = (await ask({ input: 'One' })).body;
    const other = await world.createAccount();
    expect((await world.get(`/v1/responses/${id}/input_items`, other)).status).toBe(404);
    for (const query of ['?limit=0', '?limit=101', '?limit=x', '?order=up', '?after=msg_x']) {
      expect([query, (await itemsOf(id, query)).status]).toEqual([query, 400]);
    }
  });
});

describe('a count of input tokens', () => {
  test('is estimated without a charge, including tools and the continued response', async () => {
    const before = (await world.listEvents(account)).length;
    const { input_tokens: few } = await client.responses.inputTokens.count({ model: MODEL, input: 'Hello' });
    const more = await client.responses.inputTokens.count({ model: CLAUDE, input: 'Hello', tools: [TOOL] });
    expect(few).toBeGreaterThan(0);
    expect(more.input_tokens).toBeGreaterThan(few);
    expect(await world.listEvents(account)).toHaveLength(before);
    const { id } = (await ask({ input: 'One' })).body;
    const next = await client.responses.inputTokens.count({ model: MODEL, previous_response_id: id });
    expect(next.input_tokens).toBeGreaterThan(few);
  });

  test.each<[number, string | null, object]>([
    [404, 'model', { model: 'none', input: 'Hi' }],
    [400, 'input', { model: MODEL }],
    [400, 'input[0]', { model: MODEL, input: [null] }],
  ])('is rejected with %i for an invalid %s', async (status, param, body) => {
    const answer = await world.post('/v1/responses/input_tokens', body, account);
    expect([answer.status, answer.body.error.param]).toEqual([status, param]);
  });
});

describe.each([MODEL, CLAUDE, 'openai/gpt-5-codex'])('a conversation with %s', (model) => {
  const call = { type: 'function_call' as const, call_id: 'call_1', name: 'f', arguments: '{}' };
  const said: Items = [
    { role: 'user', content: 'Do it' },
    call,
    { type: 'function_call_output', call_id: 'call_1', output: 'Done' },
  ];

  test('is compacted to the user messages and one compaction item, is charged, and can be continued', async () => {
    const compacted = await client.responses.compact({ model, input: said as never });
    expect(compacted.object).toBe('response.compaction');
    expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
    expect(compacted.usage).toMatchObject({ output_tokens: expect.any(Number), cost: expect.any(Number) });
    expect((await world.listEvents(account)).at(-1)).toMatchObject({ type: 'HoldSettled' });
    tap.takeReceived();
    const input = [...compacted.output, { role: 'user', content: 'Go on' }];
    expect((await ask({ model, input })).status).toBe(200);
    const sent = JSON.stringify(tap.takeReceived());
    for (const each of ['Do it', 'every coin that comes', 'Go on']) expect(sent).toContain(each);
    expect(sent).not.toContain('call_1');
  });

  test('is compacted if its last item is a compaction trigger, non-streaming and streamed', async () => {
    const input = [...said, { type: 'compaction_trigger' }];
    const whole = await ask({ model, input, tools: [TOOL] });
    expect(whole.body.output).toEqual([
      { type: 'compaction', id: expect.stringMatching(/^cmp_/), encrypted_content: expect.any(String) },
    ]);
    const { events } = await ask({ model, input, tools: [TOOL], stream: true });
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item.type)).toEqual(['compaction']);
    expect(events.at(-2)).toMatchObject({ type: 'response.completed', response: { output: [done[0].item] } });
    const next = await ask({ model, input: 'Go on', previous_response_id: whole.body.id });
    expect(next.status).toBe(200);
  });
});

test.each<[string, readonly object[]]>([
  ['input[0].type', [{ type: 'compaction_trigger' }, { role: 'user', content: 'Hi' }]],
  ['input[0].encrypted_content', [{ type: 'compaction', encrypted_content: 'gAAAA' }]],
  ['input[0].encrypted_content', [{ type: 'compaction' }]],
])('rejects an invalid compaction with a 400 that names %s', async (param, input) => {
  const { status, body } = await ask({ input });
  expect([status, body.error.param]).toEqual([400, param]);
});

describe('a response of a model with an endpoint that retains nothing', () => {
  const ZDR = 'deepseek/deepseek-chat-v3.1';

  test.each<[string, object, boolean]>([
    ['without store', {}, false],
    ['with store', { store: true }, true],
  ])('is stored only on request (%s)', async (_, more, store) => {
    const { body } = (await world.get('/v1/models')) as { body: { data: Items } };
    const model = body.data.find(({ privacyLevel }) => privacyLevel === 'zdr')?.id ?? ZDR;
    const answer = await ask({ model, input: 'Hi', ...more });
    expect([answer.status, answer.body.store]).toEqual([200, store]);
    expect((await world.get(`/v1/responses/${answer.body.id}`, account)).status).toBe(store ? 200 : 404);
  });
});
