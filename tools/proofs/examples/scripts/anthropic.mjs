// The usual examples of Anthropic's documentation.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import Anthropic, { toFile } from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { runExamples } from './run-examples.mjs';

const { GATEWAY_URL, API_KEY, PDF, PNG } = process.env;
const client = new Anthropic({ baseURL: GATEWAY_URL, apiKey: API_KEY, maxRetries: 0 });
const MODEL = 'claude-haiku-4-5';
const THINKING = { type: 'enabled', budget_tokens: 1_024 };

const user = (content) => ({ role: 'user', content });
const base = (body) => ({ model: MODEL, max_tokens: 2_000, messages: [user('Hello, Claude')], ...body });
const create = (body) => client.messages.create(base(body));
const beta = (betas, body) => client.beta.messages.create({ ...base(body), betas });

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } };
const text = (value) => ({ type: 'text', text: value });

const input_schema = {
  type: 'object',
  properties: { location: { type: 'string', description: 'The city and state' } },
  required: ['location'],
};
const tools = [{ name: 'get_weather', description: 'Returns the weather of a location', input_schema }];
const FORECAST_PROMPT = 'What is the weather in San Francisco? [[sandbox tool=get_weather]]';

function assertMessage(message) {
  const { type, role, content, stop_reason, usage } = message;
  assert.deepEqual([type, role, stop_reason], ['message', 'assistant', 'end_turn']);
  assert.ok(content.at(-1).text.length > 0, 'the text is empty');
  assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0);
}

function findCalls({ stop_reason, content }, name) {
  assert.equal(stop_reason, 'tool_use');
  const calls = content.filter((block) => block.type === 'tool_use');
  for (const call of calls) assert.equal(call.name, name);
  return calls;
}

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const messages = {
  'message: basic': async () => assertMessage(await create()),
  'message: system prompt': async () => assertMessage(await create({ system: 'You are a seasoned data scientist.' })),
  'message: several turns': async () => {
    const history = [user('Hello, Claude'), { role: 'assistant', content: 'Hello!' }, user('Describe LLMs to me')];
    assertMessage(await create({ messages: history }));
  },
  'message: prefilled': async () => {
    const history = [user('What is Latin for ant? (A) Apoidea, (B) Formicidae'), { role: 'assistant', content: '(' }];
    assertMessage(await create({ messages: history }));
  },
  'message: prefilled, Claude 4.6 or later': () =>
    create({ model: 'claude-opus-4-6', messages: [user('Hello'), { role: 'assistant', content: '(' }] }),
  'message: vision': async () =>
    assertMessage(await create({ messages: [user([image, text('What is in this image?')])] })),
  'message: stop sequence, metadata': async () =>
    assertMessage(await create({ stop_sequences: ['###'], metadata: { user_id: 'user-1' } })),
  'message: service tier': async () => {
    const message = await create({ service_tier: 'auto' });
    assertMessage(message);
    assert.equal(message.usage.service_tier, 'standard');
  },
  'message: streaming': async () => {
    const events = await collect(await create({ stream: true }));
    assert.equal(events[0].type, 'message_start');
    assert.ok(events[0].message.usage.input_tokens > 0);
    assert.equal(events.at(-1).type, 'message_stop');
  },
  'message: streaming helper': async () => {
    let received = '';
    const stream = client.messages.stream(base()).on('text', (delta) => {
      received += delta;
    });
    const message = await stream.finalMessage();
    assertMessage(message);
    assert.equal(received, message.content[0].text);
  },
};

const toolUse = {
  'tools: use and result': async () => {
    const history = [user(FORECAST_PROMPT)];
    const called = await create({ messages: history, tools });
    const [{ id, input }] = findCalls(called, 'get_weather');
    assert.ok('location' in input);
    history.push({ role: 'assistant', content: called.content });
    history.push(user([{ type: 'tool_result', tool_use_id: id, content: '15 degrees' }]));
    assertMessage(await create({ messages: history, tools }));
  },
  'tools: streaming': async () => {
    const stream = client.messages.stream(base({ messages: [user(FORECAST_PROMPT)], tools }));
    assert.equal(findCalls(await stream.finalMessage(), 'get_weather').length, 1);
  },
  'tools: choice of a tool': async () => {
    const message = await create({ tools, tool_choice: { type: 'tool', name: 'get_weather' } });
    assert.equal(findCalls(message, 'get_weather').length, 1);
  },
  'tools: any tool': async () =>
    assert.equal(findCalls(await create({ tools, tool_choice: { type: 'any' } }), 'get_weather').length, 1),
  'tools: none': async () => assertMessage(await create({ tools, tool_choice: { type: 'none' } })),
  'tools: parallel calls': async () => {
    const history = [user('The weather in SF and NYC? [[sandbox tools=2]]')];
    const called = await create({ messages: history, tools });
    const calls = findCalls(called, 'get_weather');
    assert.equal(calls.length, 2);
    history.push({ role: 'assistant', content: called.content });
    history.push(user(calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: '15 degrees' }))));
    assertMessage(await create({ messages: history, tools }));
  },
  'tools: no parallel calls': async () => {
    const history = [user('The weather in SF and NYC? [[sandbox tools=2]]')];
    const tool_choice = { type: 'auto', disable_parallel_tool_use: true };
    assert.equal(findCalls(await create({ messages: history, tools, tool_choice }), 'get_weather').length, 1);
  },
  'tools: strict': async () => {
    const strict = [{ ...tools[0], strict: true, input_schema: { ...input_schema, additionalProperties: false } }];
    const message = await create({ messages: [user(FORECAST_PROMPT)], tools: strict });
    assert.equal(findCalls(message, 'get_weather').length, 1);
  },
  'tools: runner': async () => {
    const inputSchema = z.object({ location: z.string() });
    const run = () => '15 degrees';
    const forecastTool = betaZodTool({ name: 'get_weather', description: 'Weather', inputSchema, run });
    assertMessage(
      await client.beta.messages.toolRunner(base({ messages: [user(FORECAST_PROMPT)], tools: [forecastTool] })),
    );
  },
  'tools: bash': async () => {
    const bash = { type: 'bash_20250124', name: 'bash' };
    const message = await create({ messages: [user('List files [[sandbox tool=bash]]')], tools: [bash] });
    assert.equal(findCalls(message, 'bash').length, 1);
  },
  'tools: text editor': async () => {
    const editor = { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 10_000 };
    const history = [user('Fix primes.py [[sandbox tool=str_replace_based_edit_tool]]')];
    assert.equal(findCalls(await create({ messages: history, tools: [editor] }), editor.name).length, 1);
  },
  'tools: memory': async () => {
    const memory = { type: 'memory_20250818', name: 'memory' };
    const message = await create({ messages: [user('Remember me [[sandbox tool=memory]]')], tools: [memory] });
    assert.equal(findCalls(message, 'memory').length, 1);
  },
  'tools: memory, runner': async () => {
    const handler = async () => 'No memories yet';
    const names = ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'];
    const memory = betaMemoryTool(Object.fromEntries(names.map((name) => [name, handler])));
    const request = base({ messages: [user('Remember me [[sandbox tool=memory]]')], tools: [memory] });
    assertMessage(await client.beta.messages.toolRunner(request));
  },
  'tools: computer use': async () => {
    const display = { display_width_px: 1_024, display_height_px: 768 };
    const computer = { type: 'computer_20250124', name: 'computer', ...display };
    const request = { messages: [user('Save a screenshot [[sandbox tool=computer]]')], tools: [computer] };
    assert.equal(findCalls(await beta(['computer-use-2025-01-24'], request), 'computer').length, 1);
  },
  'tools: computer toolset': () => create({ tools: [{ type: 'computer_toolset_20260801' }] }),
  'tools: web search': async () => {
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 5 };
    const history = [user('What is the weather in NYC? [[sandbox tool=web_search]]')];
    const { content, usage } = await create({ messages: history, tools: [search] });
    assert.ok(content.some(({ type }) => type === 'server_tool_use'));
    assert.ok(content.some(({ type }) => type === 'web_search_tool_result'));
    assert.ok(content.some(({ citations }) => citations?.[0]?.type === 'web_search_result_location'));
    assert.ok(usage.server_tool_use.web_search_requests > 0);
  },
  'tools: web search, streaming': async () => {
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 5 };
    const history = [user('What is the weather in NYC? [[sandbox tool=web_search]]')];
    const { content } = await client.messages.stream(base({ messages: history, tools: [search] })).finalMessage();
    assert.ok(content.some(({ citations }) => citations?.length > 0));
  },
  'tools: web fetch': () => create({ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 5 }] }),
  'tools: code execution': () => create({ tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }),
  'tools: tool search': () =>
    create({ tools: [{ type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }, ...tools] }),
  'tools: MCP connector': () =>
    beta(['mcp-client-2025-11-20'], {
      mcp_servers: [{ type: 'url', url: 'https://example.com/sse', name: 'example' }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'example' }],
    }),
  'tools: programmatic calls': () => create({ tools: [{ ...tools[0], allowed_callers: ['code_execution_20260120'] }] }),
  'tools: advisor': () =>
    beta(['advisor-tool-2026-03-01'], { tools: [{ type: 'advisor_20260301', name: 'advisor', model: MODEL }] }),
};

const features = {
  'thinking: extended': async () => {
    const history = [user('Are there infinite primes? [[sandbox tokens=40 reasoning=20]]')];
    const message = await create({ messages: history, thinking: THINKING });
    assertMessage(message);
    assert.equal(message.content[0].type, 'thinking');
    assert.ok(message.content[0].signature.length > 0);
    history.push({ role: 'assistant', content: message.content }, user('Thanks. And twin primes?'));
    assertMessage(await create({ messages: history, thinking: THINKING }));
  },
  'thinking: streaming': async () => {
    const history = [user('Are there infinite primes? [[sandbox tokens=40 reasoning=20]]')];
    const events = await collect(await create({ messages: history, thinking: THINKING, stream: true }));
    assert.ok(events.some(({ delta }) => delta?.type === 'thinking_delta'));
    assert.ok(events.some(({ delta }) => delta?.type === 'signature_delta'));
  },
  'thinking: adaptive': async () => {
    const history = [user('Are there infinite primes? [[sandbox tokens=40 reasoning=20]]')];
    const options = { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } };
    assertMessage(await create({ model: 'claude-opus-4-6', messages: history, ...options }));
  },
  'prompt caching: five minutes': async () => {
    const system = [
      text('You analyse literary works.'),
      { ...text('It is a truth.'), cache_control: { type: 'ephemeral' } },
    ];
    const message = await create({ system });
    assertMessage(message);
    assert.equal(typeof message.usage.cache_read_input_tokens, 'number');
  },
  'prompt caching: one hour': async () => {
    const system = [{ ...text('It is a truth.'), cache_control: { type: 'ephemeral', ttl: '1h' } }];
    assertMessage(await create({ system }));
  },
  'prompt caching: automatic': async () => assertMessage(await create({ cache_control: { type: 'ephemeral' } })),
  'document: PDF': async () =>
    assertMessage(await create({ messages: [user([pdf, text('What are the key findings?')])] })),
  'document: text': async () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'The grass is green.' };
    assertMessage(await create({ messages: [user([{ type: 'document', source }, text('What colour is it?')])] }));
  },
  'document: citations': () =>
    create({ messages: [user([{ ...pdf, citations: { enabled: true } }, text('What is it about?')])] }),
  'document: search result': () => {
    const result = { type: 'search_result', source: 'https://example.com', title: 'A page', content: [text('Words')] };
    return create({ messages: [user([{ ...result, citations: { enabled: true } }, text('What is it about?')])] });
  },
  'document: file by id': () =>
    beta(['files-api-2025-04-14'], {
      messages: [user([{ type: 'document', source: { type: 'file', file_id: 'file_abc123' } }, text('Hello')])],
    }),
  'structured output: schema': async () => {
    const schema = {
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    };
    const { content } = await create({ output_config: { format: { type: 'json_schema', schema } } });
    assert.equal(typeof JSON.parse(content[0].text).name, 'string');
  },
  'structured output: helper': async () => {
    const format = zodOutputFormat(z.object({ name: z.string(), email: z.string() }));
    const { parsed_output } = await client.messages.parse(base({ output_config: { format } }));
    assert.equal(typeof parsed_output.email, 'string');
  },
  'context: clear thinking': async () => {
    const edits = [JSON.parse('{"type":"clear_thinking_20251015","keep":"all"}')];
    const request = { thinking: THINKING, context_management: { edits } };
    assertMessage(await beta(['context-management-2025-06-27'], request));
  },
  'context: clear tool uses': () =>
    beta(['context-management-2025-06-27'], { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }),
  'context: compaction': () =>
    beta(['compact-2026-01-12'], { context_management: { edits: [{ type: 'compact_20260112' }] } }),
  'fast mode': () => beta(['fast-mode-2026-02-01'], { model: 'claude-opus-4-6', speed: 'fast' }),
  'data residency': () => create({ inference_geo: 'us' }),
  'skills: in a container': () =>
    beta(['code-execution-2025-08-25', 'skills-2025-10-02'], {
      container: { skills: [{ type: 'anthropic', skill_id: 'pptx', version: 'latest' }] },
    }),
};

const batchRequests = [{ custom_id: 'first', params: base() }];

const furtherExamples = {
  'count tokens: message': async () => {
    const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages: [user('Hello, Claude')] });
    assert.ok(input_tokens > 0);
  },
  'count tokens: tools, image, PDF': async () => {
    const content = [image, pdf, text('What is this?')];
    const request = { model: MODEL, system: 'You are a scientist', tools, messages: [user(content)] };
    assert.ok((await client.messages.countTokens(request)).input_tokens > 100);
  },
  'batch: create': () => client.messages.batches.create({ requests: batchRequests }),
  'batch: list': () => client.messages.batches.list(),
  'batch: retrieve': () => client.messages.batches.retrieve('msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d'),
  'batch: cancel': () => client.messages.batches.cancel('msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d'),
  'model: list': async () => {
    const { data, has_more, first_id } = await client.models.list({ limit: 20 });
    assert.equal(data[0].type, 'model');
    assert.equal(first_id, data[0].id);
    assert.equal(typeof has_more, 'boolean');
    assert.ok(!Number.isNaN(Date.parse(data[0].created_at)));
  },
  'model: all pages': async () => {
    const models = await collect(client.models.list({ limit: 20 }));
    assert.ok(models.length > 20);
  },
  'model: retrieve': async () => assert.equal((await client.models.retrieve(MODEL)).type, 'model'),
  'file: upload': async () => {
    const file = await toFile(Buffer.from('Hello'), 'hello.txt', { type: 'text/plain' });
    return client.beta.files.upload({ file });
  },
  'file: list': () => client.beta.files.list(),
  'file: retrieve': () => client.beta.files.retrieveMetadata('file_abc123'),
  'file: download': () => client.beta.files.download('file_abc123'),
  'file: delete': () => client.beta.files.delete('file_abc123'),
  'skill: list': () => client.beta.skills.list(),
  'skill: create': async () => {
    const file = await toFile(Buffer.from('---\nname: a\n---\n'), 'a/SKILL.md');
    return client.beta.skills.create({ display_title: 'A skill', files: [file] });
  },
  'agent: create': () => client.beta.agents.create({ name: 'Coder', model: MODEL }),
  'session: create': () => client.beta.sessions.create({ agent: 'agent_123', environment_id: 'env_123' }),
  'environment: list': () => client.beta.environments.list(),
};

await runExamples({ ...messages, ...toolUse, ...features, ...furtherExamples }, (error) =>
  error instanceof Anthropic.APIError && error.status >= 400
    ? { status: error.status, message: error.message, param: error.error?.error?.details?.param }
    : undefined,
);
