/** Turns of Claude that Anthropic pauses while it searches are continued, and the client gets one response. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { formatTotalCost, listCharges, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const TOOL = { type: 'web_search' };
const TEXT = 'every coin that';
/** Each call makes one search and writes `TEXT`. */
const SEARCH = 'tool=web_search text="every coin that"';

let world: TestWorld;
let account: TestAccount;
let ids = 0;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(2);
  await world.bill.clear();
});

const pause = (times: number, more = '') => `${SEARCH} fault=pause_turn fault_times=${times} id=pause${++ids} ${more}`;
const ALWAYS = `${SEARCH} fault=pause_turn`;
const ask = (directive: string, more: object = {}) =>
  world.sendChat(account, directive, { model: CLAUDE, tools: [TOOL], ...more });
const charges = async () => listCharges(await world.listEvents(account));
const listItems = async () => (await charges()).flatMap(({ items }) => items);
const openai = () => new OpenAI({ baseURL: `${world.api}/v1`, apiKey: account.apiKey, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: world.api, apiKey: account.apiKey, maxRetries: 0 });

async function assertBooksAreTheBill(): Promise<void> {
  expect(formatTotalCost(await charges())).toBe((await world.bill.fetchTotal()).total_usd);
}

/** Asserts that the charge has an item for each of the model's calls and for each call's search. */
async function assertCharged(calls: number, searches = calls): Promise<void> {
  const items = await listItems();
  expect(items.filter(({ of }) => of === CLAUDE)).toHaveLength(calls);
  const fees = items.filter(({ of }) => of === 'web_search_anthropic');
  expect(fees.map(({ usage }) => usage.search)).toEqual(Array(searches).fill(1));
  expect(items.every(({ estimated }) => !estimated)).toBe(true);
  expect(new Set(items.map(({ vendorId }) => vendorId)).size).toBe(calls);
  const [charge] = await charges();
  expect(charge?.attempts).toMatchObject(Array(calls).fill({ outcome: 'ok', provider: 'anthropic' }));
  await assertBooksAreTheBill();
}

describe.each([
  ['whole', false],
  ['streamed', true],
])('a paused turn that is %s', (_, isStreamed) => {
  test('becomes one chat with all of its text, sources and usage', async () => {
    const body = {
      model: CLAUDE,
      tools: [TOOL as never],
      messages: [{ role: 'user' as const, content: `[[sandbox ${pause(2)}]]` }],
    };
    const chat = isStreamed
      ? await openai()
          .chat.completions.stream({ ...body, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await openai().chat.completions.create(body);

    const [choice] = chat.choices;
    expect(choice).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant', content: TEXT.repeat(3) } });
    await assertCharged(3);
    const items = (await listItems()).filter(({ of }) => of === CLAUDE);
    const total = items.reduce((sum, { usage }) => sum + (usage.output ?? 0), 0);
    expect(chat.usage?.completion_tokens).toBe(total);
    expect(total).toBe(9);
  });

  test('becomes one message with a result for each search', async () => {
    const body = {
      model: CLAUDE,
      max_tokens: 500,
      tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const }],
      messages: [{ role: 'user' as const, content: `[[sandbox ${pause(1)}]]` }],
    };
    const message = isStreamed
      ? await anthropic().messages.stream(body).finalMessage()
      : await anthropic().messages.create(body);

    expect(message).toMatchObject({ stop_reason: 'end_turn', usage: { server_tool_use: { web_search_requests: 2 } } });
    const calls = message.content.filter(({ type }) => type === 'server_tool_use');
    const results = message.content.filter(({ type }) => type === 'web_search_tool_result');
    expect(new Set(calls.map((block) => 'id' in block && block.id)).size).toBe(2);
    expect(results).toHaveLength(2);
    await assertCharged(2);
  });

  test('becomes one response with an item for each search', async () => {
    const body = { model: CLAUDE, input: `[[sandbox ${pause(1)}]]`, tools: [TOOL as never] };
    const response = isStreamed
      ? await openai().responses.stream(body).finalResponse()
      : await openai().responses.create(body);

    expect(response.status).toBe('completed');
    expect(response.output.filter(({ type }) => type === 'web_search_call')).toHaveLength(2);
    expect(response.output_text).toBe(TEXT.repeat(2));
    await assertCharged(2);
  });

  test('is continued at most three times, and makes at most three searches', async () => {
    const answer = await ask(ALWAYS, { stream: isStreamed });

    const choices = isStreamed ? answer.events.flatMap((event) => event.choices ?? []) : answer.body.choices;
    const ends = choices.filter(({ finish_reason }: { finish_reason: unknown }) => finish_reason);
    expect(ends).toMatchObject([{ finish_reason: 'length', native_finish_reason: 'pause_turn' }]);
    await assertCharged(4, 3);
  });

  test('that is not continued to its end has the stop reason of Anthropic in a message', async () => {
    const body = {
      model: CLAUDE,
      max_tokens: 500,
      tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const }],
      messages: [{ role: 'user' as const, content: `[[sandbox ${ALWAYS}]]` }],
    };
    const message = isStreamed
      ? await anthropic().messages.stream(body).finalMessage()
      : await anthropic().messages.create(body);
    expect(message.stop_reason).toBe('pause_turn');
  });

  test('that is not continued to its end is resumed when a client of messages sends it back', async () => {
    const create = (messages: Anthropic.MessageParam[]) => {
      const tools = [{ type: 'web_search_20250305' as const, name: 'web_search' as const }];
      // This model rejects a last turn of the assistant that it is to continue as text.
      const body = { model: 'anthropic/claude-sonnet-4.6', max_tokens: 500, tools, messages };
      return isStreamed ? anthropic().messages.stream(body).finalMessage() : anthropic().messages.create(body);
    };
    const question = { role: 'user' as const, content: `[[sandbox ${pause(4)}]]` };
    const first = await create([question]);
    expect(first.stop_reason).toBe('pause_turn');

    const second = await create([question, { role: 'assistant', content: first.content }]);
    expect(second).toMatchObject({
      stop_reason: 'end_turn',
      content: [{ type: 'server_tool_use' }, { type: 'web_search_tool_result' }, { type: 'text', text: TEXT }],
    });
    expect(await charges()).toHaveLength(2);
    await assertBooksAreTheBill();
  });

  test('stays within the output limit of the request', async () => {
    const answer = await ask(ALWAYS, { stream: isStreamed, max_tokens: 7 });

    const choices = isStreamed ? answer.events.flatMap((event) => event.choices ?? []) : answer.body.choices;
    expect(choices.flatMap(({ finish_reason }: { finish_reason?: string }) => finish_reason ?? [])).toEqual(['length']);
    const items = (await listItems()).filter(({ of }) => of === CLAUDE);
    expect(items.map(({ usage }) => usage.output)).toEqual([3, 3, 1]);
    await assertBooksAreTheBill();
  });

  test('has the reasoning of all calls in order', async () => {
    const more = { reasoning: { max_tokens: 1_024 }, max_tokens: 4_000, stream: isStreamed };
    const answer = await ask(pause(1, 'reasoning=2'), more);

    const choices = isStreamed ? answer.events.flatMap((event) => event.choices ?? []) : answer.body.choices;
    const parts = choices.map(({ delta, message }: { delta?: object; message?: object }) => message ?? delta);
    const details = parts.flatMap((part: { reasoning_details?: object[] }) => part.reasoning_details ?? []);
    expect(details).toMatchObject([{ index: 0, signature: expect.any(String) }, { index: 1 }]);
    expect(answer.status).toBe(200);
    await assertCharged(2);
  });
});

test('a stream of several calls has the role once and in its first chunk', async () => {
  const { events } = await ask(pause(2), { stream: true });

  const deltas = events.flatMap((event) => event.choices ?? []).map(({ delta }) => delta);
  expect(deltas[0]).toMatchObject({ role: 'assistant' });
  expect(deltas.filter(({ role }) => role !== undefined)).toHaveLength(1);
});

test('the sources of all calls have their positions in the complete text', async () => {
  const whole = await ask(pause(2));
  const streamed = await ask(pause(2), { stream: true });

  const deltas = streamed.events.flatMap((event) => event.choices ?? []).map(({ delta }) => delta);
  for (const parts of [[whole.body.choices[0].message], deltas]) {
    const citations = parts.flatMap(({ annotations = [] }) => annotations);
    expect(citations.map(({ url_citation }) => [url_citation.start_index, url_citation.end_index])).toEqual(
      [0, 1, 2].map((part) => [part * TEXT.length, (part + 1) * TEXT.length]),
    );
  }
});

test('a turn continues without searches if the hold pays for no further one', async () => {
  const headers = { 'x-credit-id': account.creditId };
  const { body } = await world.send('POST', '/keys', { headers, body: { name: 'poor', usage_limit_usd: 0.05 } });
  const key = { creditId: account.creditId, apiKey: body.data.api_key };

  const answer = await world.sendChat(key, pause(1), { model: CLAUDE, tools: [TOOL], max_tokens: 64 });

  const content = expect.stringMatching(`^${TEXT}${TEXT}`);
  expect(answer.body.choices).toMatchObject([{ finish_reason: 'stop', message: { content } }]);
  await assertCharged(2, 1);
});
