/**
 * The contract gate of chats and embeddings: requests with all that customers can send, to every kind of endpoint,
 * through each protocol. What connectors and the sandbox send must agree with the contracts of the providers,
 * apart from the listed deviations, each of which must occur.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isPrivate, readCatalogue } from '#catalogue';
import { CHAT_DEVIATIONS, ContractGate, PIXEL, sampleCases, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(500);
});
afterAll(() => world.close());

const { models } = readCatalogue();
const served = models.flatMap((model) =>
  isPrivate(model) ? [] : model.endpoints.map((endpoint) => ({ model, endpoint, slug: endpoint.slug })),
);
const embeddings = served.filter(({ model }) => model.type === 'embedding');
type Chat = (typeof served)[number];

/** The free models have the parameters of other models of their provider. */
const chats = served.filter(({ model }) => model.type === 'chat' && !model.id.endsWith(':free'));
/** One endpoint for each provider, set of supported parameters and kind of thinking: of the model with the most inputs. */
const KINDS = [
  ...new Map(
    chats
      .toSorted((one, other) => one.model.inputs.length - other.model.inputs.length)
      .map((chat) => {
        const { upstream, parameters, speaks, modelRules } = chat.endpoint;
        return [[upstream, ...parameters, ...speaks, modelRules.preservedThinking].join(), chat];
      }),
  ).values(),
];

const IMAGE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const DOCUMENT = Buffer.from('%PDF-1.4\n1 0 obj <</Type /Catalog>> endobj\ntrailer <</Root 1 0 R>>').toString('base64');
const CITY = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Ur'] } },
  required: ['city'],
  additionalProperties: false,
};
const FUNCTION = { name: 'weather', description: 'Returns the weather', parameters: CITY };
const OTHER_FUNCTION = { name: 'book', parameters: CITY, strict: true };

interface GateRequest {
  /** Parameters and protocols that the endpoint must support. */
  readonly requires?: readonly string[];
  /** The directive in the last text of the customer. */
  readonly directive?: string;
  readonly [field: string]: unknown;
}

const CHAT_REQUESTS: Readonly<Record<string, GateRequest>> = {
  sampling: {
    directive: 'tokens=2',
    max_tokens: 50,
    temperature: 0.5,
    frequency_penalty: 0.1,
    presence_penalty: 0.1,
    repetition_penalty: 1.1,
    seed: 7,
    stop: ['END'],
    logprobs: true,
    top_logprobs: 2,
    user: 'someone',
    metadata: { order: '7' },
  },
  'other sampling': { directive: 'tokens=2', top_p: 0.9, top_k: 5, min_p: 0.1, logit_bias: { 50: 1 }, stop: 'END' },
  choices: { requires: ['chat', 'n'], directive: 'tokens=2', n: 2 },
  'other fields': { directive: 'tokens=2', verbosity: 'low', service_tier: 'auto', store: false, modalities: ['text'] },
  roles: {
    messages: [
      { role: 'developer', content: 'Be short.' },
      { role: 'system', content: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }] },
      { role: 'user', name: 'ann', content: 'Hello' },
      { role: 'assistant', name: 'bot', content: 'Hello', refusal: null, reasoning: 'A greeting.', annotations: [] },
      { role: 'user', content: '[[sandbox tokens=2]]' },
    ],
  },
  'a tool call': {
    directive: 'tool=weather',
    tools: [
      { type: 'function', function: FUNCTION },
      { type: 'function', function: OTHER_FUNCTION },
    ],
    tool_choice: 'auto',
    parallel_tool_calls: false,
  },
  'a required tool': {
    directive: 'chunks=2',
    tools: [{ type: 'function', function: FUNCTION }],
    tool_choice: { type: 'function', function: { name: 'weather' } },
  },
  'the result of a tool': {
    tools: [{ type: 'function', function: FUNCTION }],
    messages: [
      { role: 'user', content: 'How is it? [[sandbox tool=weather]]' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', index: 0, type: 'function', function: { name: 'weather', arguments: '{"city":"Ur"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', name: 'weather', content: 'fine' },
    ],
  },
  'a schema': {
    directive: '',
    response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: CITY } },
  },
  'JSON output': { directive: 'text="{}"', response_format: { type: 'json_object' } },
  'an effort': { directive: 'reasoning=2 tokens=4', reasoning: { effort: 'low', exclude: false } },
  'a reasoning budget': { directive: 'reasoning=2 tokens=4', max_tokens: 4000, reasoning: { max_tokens: 2000 } },
  'hidden reasoning': { directive: 'reasoning=2 tokens=4', reasoning: { enabled: true, exclude: true } },
  'a web search': { directive: 'tokens=2', plugins: [{ id: 'web', max_results: 2 }] },
};

/** Content by kind of input. */
const CONTENT: Readonly<Record<string, readonly object[]>> = {
  image: [{ type: 'image_url', image_url: { url: IMAGE, detail: 'low' } }],
  file: [{ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${DOCUMENT}` } }],
};

const TOOL = { type: 'function', ...FUNCTION };
const RESPONSES_REQUESTS: Readonly<Record<string, GateRequest>> = {
  'a text': {
    directive: 'tokens=2',
    instructions: 'Be short.',
    max_output_tokens: 50,
    metadata: { order: '7' },
    user: 'someone',
    truncation: 'auto',
    text: { verbosity: 'low' },
    store: false,
  },
  'a tool call': { directive: 'tool=weather', tools: [TOOL], tool_choice: 'auto', parallel_tool_calls: false },
  'a required tool': { directive: '', tools: [TOOL], tool_choice: { type: 'function', name: 'weather' } },
  'the result of a tool': {
    tools: [TOOL],
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'How is it? [[sandbox tool=weather]]' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'One moment.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Ur"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'fine' },
    ],
  },
  'a call of a custom tool': {
    requires: ['custom_tools'],
    directive: 'tool=run text="ls"',
    tools: [{ type: 'custom', name: 'run', description: 'Runs a command', format: { type: 'text' } }],
  },
  'a schema': { directive: '', text: { format: { type: 'json_schema', name: 'place', strict: true, schema: CITY } } },
  reasoning: {
    directive: 'reasoning=2 tokens=4',
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  },
  'a web search': { directive: 'tool=web_search', tools: [{ type: 'web_search' }] },
  'a required web search': {
    directive: 'tool=web_search',
    tools: [{ type: 'web_search', filters: { allowed_domains: ['example.com'] } }],
    tool_choice: { type: 'web_search' },
  },
};

const MESSAGES_TOOL = { name: 'weather', description: 'Returns the weather', input_schema: CITY };
const MESSAGES_REQUESTS: Readonly<Record<string, GateRequest>> = {
  'a text': {
    directive: 'tokens=2',
    system: [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }],
    stop_sequences: ['END'],
    metadata: { user_id: 'someone' },
  },
  'a tool call': { directive: 'tool=weather', tools: [MESSAGES_TOOL], tool_choice: { type: 'auto' } },
  'a required tool': {
    directive: '',
    tools: [MESSAGES_TOOL],
    tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
  },
  'the result of a tool': {
    tools: [MESSAGES_TOOL],
    messages: [
      { role: 'user', content: 'How is it? [[sandbox tool=weather]]' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Ur' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'fine', is_error: false }] },
    ],
  },
  thinking: {
    directive: 'reasoning=2 tokens=4',
    max_tokens: 4000,
    thinking: { type: 'enabled', budget_tokens: 2000 },
  },
  'a web search': {
    directive: 'tool=web_search',
    tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }],
  },
};

/** Whether a request is streamed: both in turn. */
const BOTH = [false, true];

/** Without a conversation of its own, the request has one text of a customer. */
async function send(
  route: string,
  { model, slug }: Chat,
  name: string,
  request: GateRequest,
  streamed: readonly boolean[] = BOTH,
): Promise<void> {
  const { requires: _, directive, ...fields } = request;
  const text = directive === '' ? 'Hello' : `[[sandbox ${directive}]]`;
  const conversation = route === '/v1/responses' ? { input: text } : { messages: [{ role: 'user', content: text }] };
  const limit = route === '/v1/messages' ? { max_tokens: 1000 } : {};
  const sendOnce = async (stream: boolean) => {
    const body = { model: model.id, provider: { only: [slug] }, ...limit, ...conversation, ...fields, stream };
    const response = await world.post(route, body, account);
    expect([name, response.status, response.text]).toEqual([name, 200, response.text]);
    expect(response.text).not.toContain('"error":{');
  };
  await Promise.all(streamed.map(sendOnce));
}

/**
 * Sends the requests that the endpoint supports, all at once: alone, each would wait for the database. Unless all cases
 * are tested, every other request is streamed, and the others are not.
 */
async function sendSupported(route: string, chat: Chat, requests: Readonly<Record<string, GateRequest>>) {
  const { parameters, speaks } = chat.endpoint;
  const supported = [...parameters, ...speaks];
  const sent = Object.entries(requests).filter(([, { requires = [] }]) =>
    requires.every((name) => supported.includes(name)),
  );
  const first = KINDS.indexOf(chat);
  const toStreamed = (i: number) => sampleCases(BOTH, 1, first + i);
  await Promise.all(sent.map(([name, request], i) => send(route, chat, name, request, toStreamed(i))));
}

/** Returns the requests to one of the endpoints of a provider, of which two have all, unless all cases are tested. */
function sampleRequests(
  chat: Chat,
  requests: Readonly<Record<string, GateRequest>>,
): Readonly<Record<string, GateRequest>> {
  const siblings = KINDS.filter(({ endpoint }) => endpoint.upstream === chat.endpoint.upstream);
  const all = Object.entries(requests);
  const count = siblings.length > 1 ? Math.ceil(all.length / 2) : all.length;
  return Object.fromEntries(sampleCases(all, count, siblings.indexOf(chat)));
}

describe.each(KINDS)('$model.id at $slug', (chat) => {
  test('chats', () => {
    const inputs = chat.model.inputs.flatMap((input) => CONTENT[input] ?? []);
    const content = [...inputs, { type: 'text', text: '[[sandbox tokens=2]]' }];
    const withInputs = { 'each kind of input': { messages: [{ role: 'user', content }] } };
    return sendSupported('/v1/chat/completions', chat, { ...CHAT_REQUESTS, ...withInputs });
  });

  test('responses', () => sendSupported('/v1/responses', chat, sampleRequests(chat, RESPONSES_REQUESTS)));

  test('messages', () => sendSupported('/v1/messages', chat, sampleRequests(chat, MESSAGES_REQUESTS)));
});

test("xAI's search at OpenRouter", async () => {
  const grok = chats.find(({ model }) => model.id === 'x-ai/grok-4.3') as Chat;
  const options = { engine: 'native', user_location: { type: 'approximate', country: 'BR' } };
  const plugin = { id: 'web', ...options, include_domains: ['example.com'] };
  const tool = { type: 'web_search', ...options, excluded_domains: ['example.com'] };
  await send('/v1/chat/completions', grok, 'a plugin', { directive: 'tokens=2', plugins: [plugin] });
  await send('/v1/chat/completions', grok, 'a tool', { directive: 'tool=web_search', tools: [tool] });
});

test('errors', async () => {
  const errors = KINDS.flatMap(({ model, slug }, i) =>
    sampleCases(['400', '500', 'overloaded'], 1, i).map((fault) =>
      world.sendChat(account, `fault=${fault}`, { model: model.id, provider: { only: [slug] } }),
    ),
  );
  for (const { status } of await Promise.all(errors)) expect(status).toBeGreaterThanOrEqual(400);
});

describe.each(embeddings)('$model.id at $slug', ({ model, endpoint, slug }) => {
  const dimensions = endpoint.parameters.includes('dimensions') ? { dimensions: 256 } : {};

  test.each<[string, object]>([
    ['a text', { input: 'Hello', user: 'someone' }],
    ['texts', { input: ['Hello', 'there'], encoding_format: 'base64' }],
    // DeepInfra embeds texts only.
    ['tokens', { input: endpoint.upstream === 'deepinfra' ? ['a', 'b'] : [[1, 2], [3]], ...dimensions }],
  ])('embeds %s', async (_, fields) => {
    const body = { model: model.id, provider: { only: [slug] }, ...fields };
    const response = await world.post('/v1/embeddings', body, account);
    expect([response.status, response.text]).toEqual([200, response.text]);
  });
});

test('nothing deviates from the contracts beyond the list', () => world.contracts.assertNone());

test('every listed deviation occurs', () => {
  const { occurred } = world.contracts;
  expect(CHAT_DEVIATIONS.filter((listed) => !occurred.has(listed))).toEqual([]);
});

test('a field that a connector adds is a deviation', () => {
  const gate = new ContractGate();
  const message = { role: 'user', content: 'Hello', mood: 'good' };
  const requestBody = JSON.stringify({ model: 'gpt-4o-mini', messages: [message], colour: 'red' });
  gate.check({ path: '/openai/v1/chat/completions', requestBody, status: 200, responseBody: '' });
  expect([...gate.deviations.keys()]).toEqual([
    'openai chatRequest: unknown field messages[].mood',
    'openai chatRequest: unknown field colour',
  ]);
  expect(() => gate.assertNone()).toThrow('unknown field colour');
});
