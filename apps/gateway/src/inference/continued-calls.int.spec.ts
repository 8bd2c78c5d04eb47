/** The calls that continue a paused turn: what they send to Anthropic, and what is charged if one of them fails. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { listCharges, type TestAccount, TestWorld } from '#testing';
import { respondWithEvents, respondWithJson, StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const RESULT = { type: 'web_search_result', url: 'https://a.example/', title: 'A', encrypted_content: 'c2VjcmV0' };
const CITATION = {
  type: 'web_search_result_location',
  url: RESULT.url,
  title: 'A',
  encrypted_index: 'aQ==',
  cited_text: 'x',
};
const USAGE = { input_tokens: 50, output_tokens: 8, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
const found = (id: string) => ({ type: 'web_search_tool_result', tool_use_id: id, content: [RESULT] });
const searching = (id: string, query: string) => ({
  type: 'server_tool_use',
  id,
  name: 'web_search',
  input: { query },
});
/** The content of the paused response. Its last search has no result yet. */
const PAUSED = [
  { type: 'thinking', thinking: 'Hm – ü', signature: 'c2lnbmVk' },
  searching('srvtoolu_1', 'one'),
  found('srvtoolu_1'),
  { type: 'text', text: 'Every coin', citations: [CITATION] },
  searching('srvtoolu_2', 'two'),
];
const REST = [found('srvtoolu_2'), { type: 'text', text: ' has two sides.', citations: [CITATION] }];
const invoiced = (searches: number) => ({ ...USAGE, server_tool_use: { web_search_requests: searches } });
const toMessage = (id: string, content: readonly object[], stop_reason: string) => ({
  id,
  type: 'message',
  role: 'assistant',
  model: 'm',
  stop_sequence: null,
  stop_details: null,
  content,
  stop_reason,
  usage: invoiced(1),
});

type Block = Readonly<Record<string, unknown>>;

/** Returns the events of a message whose texts arrive as deltas. */
function toEvents({ content, stop_reason, ...message }: ReturnType<typeof toMessage>): readonly object[] {
  const blocks = (content as readonly Block[]).flatMap((block, index) => {
    const { type, text, thinking, signature, citations, input } = block;
    const empty = {
      ...block,
      ...(text ? { text: '', citations: [] } : {}),
      ...(thinking ? { thinking: '', signature: '' } : {}),
    };
    const start = type === 'server_tool_use' ? { ...block, input: {} } : empty;
    const deltas = [
      ...(text ? [{ type: 'text_delta', text }] : []),
      ...(thinking
        ? [
            { type: 'thinking_delta', thinking },
            { type: 'signature_delta', signature },
          ]
        : []),
      ...(input ? [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }] : []),
      ...((citations ?? []) as object[]).map((citation) => ({ type: 'citations_delta', citation })),
    ];
    return [
      { type: 'content_block_start', index, content_block: start },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ];
  });
  return [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null, stop_details: null }, usage: message.usage },
    { type: 'message_stop' },
  ];
}

const provider = new StubServer();
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  const url = await provider.listen();
  world = await TestWorld.open({ ANTHROPIC_API_KEY: 'secret', ANTHROPIC_BASE_URL: `${url}/v1` });
});
afterAll(async () => {
  await world.close();
  await provider.close();
});
beforeEach(async () => {
  account = await world.createAccount(2);
  provider.requests.length = 0;
});

const FIRST = toMessage('msg_1', PAUSED, 'pause_turn');
const SECOND = toMessage('msg_2', REST, 'end_turn');
const CHAT = {
  model: CLAUDE,
  max_tokens: 4_000,
  reasoning: { max_tokens: 1_024 },
  tools: [{ type: 'web_search' }],
  tool_choice: { type: 'web_search' },
};
const ask = (stream: boolean) => world.sendChat(account, '', { ...CHAT, stream });
const listItems = async () => listCharges(await world.listEvents(account)).flatMap(({ items }) => items);
const listBodies = () => provider.requests.map(({ body }) => JSON.parse(body));

function respondInTurn(...responses: readonly StubServer['handler'][]): void {
  let calls = 0;
  provider.handler = (...call) => responses[calls++]?.(...call);
}

test.each([
  ['whole', false],
  ['streamed', true],
])('a turn that is %s continues with its content as it was received', async (_, stream) => {
  const respond = (message: typeof FIRST) => (stream ? respondWithEvents(toEvents(message)) : respondWithJson(message));
  respondInTurn(respond(FIRST), respond(SECOND));

  const { body, events } = await ask(stream);

  const [first, second] = listBodies();
  expect(provider.requests).toHaveLength(2);
  expect(second.messages).toEqual([...first.messages, { role: 'assistant', content: PAUSED }]);
  expect(second).toMatchObject({ system: first.system, thinking: first.thinking, max_tokens: first.max_tokens - 8 });
  expect([first.tools[0].max_uses, second.tools[0].max_uses]).toEqual([3, 2]);
  const deltas = stream
    ? events.flatMap(({ choices = [] }) => choices).map(({ delta }) => delta)
    : [body.choices[0].message];
  expect(deltas.map(({ content }) => content ?? '').join('')).toBe('Every coin has two sides.');
  expect(await listItems()).toMatchObject([
    { of: CLAUDE, vendorId: 'msg_1' },
    { of: 'web_search_anthropic', vendorId: 'msg_1', usage: { search: 1 } },
    { of: CLAUDE, vendorId: 'msg_2' },
    { of: 'web_search_anthropic', vendorId: 'msg_2', usage: { search: 1 } },
  ]);
});

test.each([
  ['whole', false],
  ['streamed', true],
])('a message that is %s pairs a search with its result in the next call', async (_, stream) => {
  const respond = (message: typeof FIRST) => (stream ? respondWithEvents(toEvents(message)) : respondWithJson(message));
  respondInTurn(respond(FIRST), respond(SECOND));

  const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
  const messages = [{ role: 'user', content: 'Hello' }];
  const answer = await world.post('/v1/messages', { model: CLAUDE, max_tokens: 500, tools, messages, stream }, account);

  const blocks: Block[] = stream
    ? answer.events.flatMap(({ content_block }) => content_block ?? [])
    : answer.body.content;
  const calls = blocks.filter(({ type }) => type === 'server_tool_use').map(({ id }) => id);
  const results = blocks.filter(({ type }) => type === 'web_search_tool_result').map(({ tool_use_id }) => tool_use_id);
  expect(calls).toHaveLength(2);
  expect(results).toEqual(calls);
});

test('a stream whose second call is rejected ends with an error, and the first call is charged', async () => {
  const rejection = { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long' } };
  respondInTurn(respondWithEvents(toEvents(FIRST)), respondWithJson(rejection, 400));

  const { events } = await ask(true);

  expect(events.find(({ error }) => error)).toMatchObject({ error: { type: 'invalid_request_error' } });
  expect(provider.requests).toHaveLength(2);
  expect(await listItems()).toMatchObject([{ of: CLAUDE, vendorId: 'msg_1' }, { vendorId: 'msg_1' }]);
});

test('a stream whose second call is interrupted is charged for what both calls have written', async () => {
  const interrupted = [
    ...toEvents(SECOND).slice(0, -3),
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
  ];
  respondInTurn(respondWithEvents(toEvents(FIRST)), respondWithEvents(interrupted));

  const { events } = await ask(true);

  expect(events.find(({ error }) => error)).toMatchObject({ error: { type: 'upstream_error' } });
  expect(provider.requests).toHaveLength(2);
  expect(await listItems()).toMatchObject([
    { of: CLAUDE, vendorId: 'msg_1', estimated: false },
    { of: 'web_search_anthropic', usage: { search: 1 } },
    { of: CLAUDE, vendorId: 'msg_2', estimated: true },
    { of: 'web_search_anthropic', usage: { search: 1 } },
  ]);
});

test('a completion whose second call is rejected fails, and the first call is charged', async () => {
  const rejection = { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long' } };
  respondInTurn(respondWithJson(FIRST), respondWithJson(rejection, 400));

  const answer = await ask(false);

  expect(answer.status).toBe(400);
  expect(await listItems()).toMatchObject([{ of: CLAUDE, vendorId: 'msg_1' }, { vendorId: 'msg_1' }]);
});

test('a turn in which the model also calls a tool of the caller is not continued', async () => {
  const called = { type: 'tool_use', id: 'toolu_1', name: 'book', input: {} };
  respondInTurn(respondWithJson(toMessage('msg_1', [...PAUSED, called], 'pause_turn')));

  const answer = await ask(false);

  expect(provider.requests).toHaveLength(1);
  expect(answer.body.choices).toMatchObject([{ finish_reason: 'length', native_finish_reason: 'pause_turn' }]);
});
