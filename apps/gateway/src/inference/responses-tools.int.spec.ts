/** Namespaces, custom tools and allowed tools in Responses, with a model of each protocol. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openTappedWorld, type TappedWorld, type TestAccount, type TestWorld, type Wiretap } from '#testing';

const NATIVE = 'openai/gpt-5-mini';
/**
 * Models with Responses and chat completions, with only chat completions, with Anthropic's Messages, with only
 * Responses, and with Responses but without custom tools.
 */
const MODELS = [NATIVE, 'google/gemini-2.5-pro', 'anthropic/claude-haiku-4.5', 'openai/gpt-5-codex', 'openai/gpt-4o'];

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ tap, world } = tapped);
  account = await world.createAccount(105);
});
afterAll(() => tapped.close());

const ask = (body: object) => world.post('/v1/responses', { max_output_tokens: 200, ...body }, account);
// biome-ignore lint/suspicious/noExplicitAny: items of any shape
type Item = any;
const user = (directive: string) => ({ role: 'user', content: `[[sandbox ${directive}]]` });

const parameters = { type: 'object', properties: { word: { const: 'hello' } }, required: ['word'] };
const SHOUT = { type: 'function', name: 'shout', description: 'Shouts', parameters, strict: false };
const SPACE = { type: 'namespace', name: 'mcp__echo', description: 'Echoes things', tools: [SHOUT] };
const PATCH = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/' },
};
const TEXT = '*** Begin Patch\n"a"\n*** End Patch';
const CALLS_PATCH = `tool=apply_patch text=${JSON.stringify(TEXT)}`;
/** A function that replaces the custom tool has the text as its argument. */
const CALLS_FUNCTION = `tool=apply_patch text=${JSON.stringify(JSON.stringify({ input: TEXT }))}`;
const patching = (model: string) => user(/gpt-5/.test(model) ? CALLS_PATCH : CALLS_FUNCTION);

/** Sends the request non-streaming and streamed, checks the streamed items, and returns both responses. */
async function both(body: object): Promise<readonly Item[]> {
  const whole = await ask(body);
  const streamed = await ask({ ...body, stream: true });
  expect([whole.status, streamed.status, whole.text.slice(0, whole.status === 200 ? 0 : 500)]).toEqual([200, 200, '']);
  const ended = streamed.events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : []));
  const last = streamed.events.at(-2).response;
  expect(ended).toEqual(last.output);
  return [whole.body, last];
}

describe.each(MODELS)('%s', (model) => {
  test('calls a tool of a namespace by its original name, and reads its result', async () => {
    const tools = [SPACE];
    for (const { output, tools: echoed } of await both({ model, tools, input: [user('tool=mcp__echo__shout')] })) {
      const call = output.find(({ type }: Item) => type === 'function_call');
      expect(call).toMatchObject({ name: 'shout', namespace: 'mcp__echo', arguments: '{"word":"hello"}' });
      expect(echoed).toEqual([SPACE]);
      const said = { type: 'function_call_output', call_id: call.call_id, output: 'HELLO' };
      tap.takeReceived();
      const next = await ask({ model, tools, input: [user('tool=mcp__echo__shout'), call, said] });
      expect(next.body.output_text).toMatch(/^every coin/);
      expect(JSON.stringify(tap.takeReceived())).not.toContain('namespace');
    }
  });

  test('calls a custom tool with text, and reads its result', async () => {
    const asked = patching(model);
    for (const { output, tools } of await both({ model, tools: [PATCH], input: [asked] })) {
      const call = output.find(({ type }: Item) => type === 'custom_tool_call');
      expect(call).toMatchObject({ name: 'apply_patch', input: TEXT, status: 'completed' });
      expect(tools).toEqual([PATCH]);
      const said = { type: 'custom_tool_call_output', call_id: call.call_id, output: 'Done' };
      const next = await ask({ model, tools: [PATCH], input: [asked, call, said] });
      expect(next.body.output_text).toMatch(/^every coin/);
    }
  });

  test('calls only allowed tools', async () => {
    const tools = [PATCH, SHOUT, { ...SHOUT, name: 'whisper' }];
    const allowed = [{ type: 'function', name: 'whisper' }];
    const tool_choice = { type: 'allowed_tools', mode: 'required', tools: allowed };
    for (const response of await both({ model, tools, tool_choice, input: 'Hi' })) {
      expect(response.output).toEqual([expect.objectContaining({ type: 'function_call', name: 'whisper' })]);
      expect(response.tool_choice).toEqual(tool_choice);
    }
  });

  test('calls the custom tool of a tool choice', async () => {
    const tools = [SHOUT, PATCH];
    const tool_choice = { type: 'custom', name: 'apply_patch' };
    for (const response of await both({ model, tools, tool_choice, input: 'Hi' })) {
      expect(response.output).toEqual([expect.objectContaining({ type: 'custom_tool_call', name: 'apply_patch' })]);
      expect(response.tool_choice).toEqual(tool_choice);
    }
  });

  test('receives an image and a file in a tool result', async () => {
    const call = { type: 'function_call', call_id: 'call_1', name: 'shout', arguments: '{}' };
    const output = [
      { type: 'input_text', text: 'Look' },
      { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
    ];
    const input = [user('tokens=3'), call, { type: 'function_call_output', call_id: 'call_1', output }];
    tap.takeReceived();
    const { status, text } = await ask({ model, tools: [SHOUT], input });
    const body = tap.takeReceived()[0]?.body;
    expect([status, text.slice(0, status === 200 ? 0 : 500)]).toEqual([200, '']);
    for (const each of ['Look', 'iVBORw0KGgo=', 'JVBERi0=']) expect(JSON.stringify(body)).toContain(each);
  });
});

test.each(MODELS)('serves a coding agent that sends additional fields, with %s', async (model) => {
  const passthrough = {
    turn_id: 'turn_1',
    create_time: 1.5,
    content_item_metadata: [{ provenance: { type: 'user' } }],
  };
  const says = (role: string, text: string) => ({
    type: 'message',
    id: `msg_${role}`,
    role,
    content: [{ type: 'input_text', text }],
    internal_chat_message_metadata_passthrough: passthrough,
  });
  const exec = { type: 'custom', name: 'exec', description: 'Runs it', format: PATCH.format };
  const functions = {
    type: 'namespace',
    name: 'functions',
    description: '',
    tools: [exec, { ...SHOUT, name: 'wait' }],
  };
  const body = {
    model,
    input: [
      { type: 'additional_tools', id: 'at_1', role: 'developer', tools: [functions, SPACE] },
      says('developer', 'You are an agent'),
      says('user', '<environment_context/>'),
      says('user', `[[sandbox tool=functions__exec text=${/gpt-5/.test(model) ? '"1"' : '"{\\"input\\":\\"1\\"}"'}]]`),
      { type: 'configuration_update', reasoning: { effort: 'low' } },
    ],
    tools: [{ type: 'web_search', external_web_access: false }],
    tool_choice: 'auto',
    parallel_tool_calls: false,
    reasoning: { effort: 'low', context: 'all_turns', summary: 'auto' },
    text: { verbosity: 'low' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'thread_1',
    client_metadata: { thread_id: 'thread_1' },
    max_output_tokens: 3_000,
  };
  for (const { output } of await both(body)) {
    const call = output.at(-1);
    expect(call).toMatchObject({ type: 'custom_tool_call', namespace: 'functions', name: 'exec', input: '1' });
    const said = { type: 'custom_tool_call_output', id: 'cto_1', call_id: call.call_id, output: 'Done' };
    const next = await ask({ ...body, input: [...body.input, ...output, said] });
    expect([next.status, next.text.slice(0, next.status === 200 ? 0 : 500)]).toEqual([200, '']);
    expect(next.body.output_text).toMatch(/^every coin/);
  }
});

describe('tools', () => {
  test('of type custom are sent as such to models that support them, else as functions with one argument', async () => {
    const heard = async (model: string) => {
      tap.takeReceived();
      expect((await ask({ model, tools: [PATCH], input: 'Hi' })).status).toBe(200);
      return tap.takeReceived()[0]?.body.tools[0];
    };
    expect(await heard(NATIVE)).toEqual(PATCH);
    const { type, function: told } = await heard('google/gemini-2.5-pro');
    expect([type, told.name, Object.keys(told.parameters.properties)]).toEqual(['function', 'apply_patch', ['input']]);
    expect(told.description).toContain('Edits files');
    expect(told.description).toContain('start: /.+/');
  });

  test('of type custom have their text input streamed, and then sent completely', async () => {
    const { events } = await ask({ model: NATIVE, tools: [PATCH], input: [user(CALLS_PATCH)], stream: true });
    const deltas = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    expect(deltas.map(({ delta }) => delta).join('')).toBe(TEXT);
    expect(events.find(({ type }) => type === 'response.custom_tool_call_input.done').input).toBe(TEXT);
  });

  test('can be declared by items of the conversation, also for continued responses', async () => {
    const more = { type: 'additional_tools', role: 'developer', tools: [SPACE] };
    const asked = user('tool=mcp__echo__shout');
    const first = await ask({ model: NATIVE, input: [more, asked] });
    const [call] = first.body.output;
    expect(call).toMatchObject({ name: 'shout', namespace: 'mcp__echo' });
    const said = { type: 'function_call_output', call_id: call.call_id, output: 'HELLO' };
    const again = { model: NATIVE, previous_response_id: first.body.id, input: [said, asked] };
    expect((await ask(again)).body.output[0]).toMatchObject({ name: 'shout', namespace: 'mcp__echo' });
  });

  test('for web search are forwarded to the provider with external_web_access', async () => {
    tap.takeReceived();
    await ask({ model: NATIVE, tools: [{ type: 'web_search', external_web_access: false }], input: 'Hi' });
    expect(tap.takeReceived()[0]?.body.tools).toEqual([{ type: 'web_search', external_web_access: false }]);
  });

  test('are sent without the keyword that makes OpenAI encrypt an argument', async () => {
    const message = { type: 'string', description: 'What to say' };
    const properties = { encrypted: { type: 'boolean' }, message: { ...message, encrypted: true } };
    tap.takeReceived();
    await ask({ model: NATIVE, tools: [{ ...SHOUT, parameters: { type: 'object', properties } }], input: 'Hi' });
    expect(tap.takeReceived()[0]?.body.tools[0].parameters.properties).toEqual({
      encrypted: { type: 'boolean' },
      message,
    });
  });

  test('may be chosen without their namespace if the name is unique', async () => {
    const tool_choice = { type: 'function', name: 'shout' };
    const { body } = await ask({ model: NATIVE, tools: [SPACE], tool_choice, input: 'Hi' });
    expect(body.output[0]).toMatchObject({ name: 'shout', namespace: 'mcp__echo' });
  });

  test('may have names that are too long for the provider', async () => {
    const name = 'x'.repeat(60);
    const tools = [{ ...SPACE, name: 'a namespace', tools: [{ ...SHOUT, name }] }];
    const tool_choice = { type: 'function', name };
    tap.takeReceived();
    const { body } = await ask({ model: NATIVE, tools, tool_choice, input: 'Hi' });
    expect(body.output[0]).toMatchObject({ name, namespace: 'a namespace' });
    expect(tap.takeReceived()[0]?.body.tools[0].name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  test('may return several results, and messages of other agents are forwarded', async () => {
    const call = { type: 'custom_tool_call', call_id: 'call_1', name: 'exec', input: 'x' };
    const output = (text: string) => ({ type: 'custom_tool_call_output', call_id: 'call_1', output: text });
    const content = [
      { type: 'input_text', text: 'I am done' },
      { type: 'encrypted_content', encrypted_content: 'and tired' },
    ];
    const agent = { type: 'agent_message', author: '/root/a', recipient: '/root', content };
    const input = [user('tokens=3'), call, output('one'), output('two'), agent];
    for (const model of ['google/gemini-2.5-pro', NATIVE, 'anthropic/claude-haiku-4.5']) {
      tap.takeReceived();
      const { status, text } = await ask({ model, input, tools: [{ type: 'custom', name: 'exec' }] });
      expect([status, text.slice(0, status === 200 ? 0 : 500)]).toEqual([200, '']);
      const sent = JSON.stringify(tap.takeReceived());
      for (const each of ['one', 'two', '/root/a', 'I am done', 'and tired']) expect(sent).toContain(each);
    }
  });

  test.each<[string, object]>([
    ['tools[0].type', { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }],
    ['tools[0].type', { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
    ['tools[0].type', { tools: [{ type: 'mcp', server_label: 's', server_url: 'https://s.example' }] }],
    ['tools[0].tools[0]', { tools: [{ ...SPACE, tools: [null] }] }],
    ['tools[0].tools', { tools: [{ ...SPACE, tools: null }] }],
    ['tools[0].tools[0].type', { tools: [{ ...SPACE, tools: [SPACE] }] }],
    ['tools[0].name', { tools: [{ ...SPACE, name: 5 }] }],
    ['tools[0].format', { tools: [{ ...PATCH, format: 'lark' }] }],
    ['tools[1].tools[0].name', { tools: [{ ...SHOUT, name: 'mcp__echo__shout' }, SPACE] }],
    ['input[0].tools[0]', { input: [{ type: 'additional_tools', tools: [null] }, user('tokens=1')] }],
    ['tool_choice.mode', { tools: [SHOUT], tool_choice: { type: 'allowed_tools', mode: 'none', tools: [] } }],
    ['tool_choice.tools', { tools: [SHOUT], tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [] } }],
    ['tool_choice.tools[0]', { tools: [SHOUT], tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [null] } }],
    [
      'tool_choice.tools[0]',
      { tools: [SHOUT], tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'custom', name: 'x' }] } },
    ],
    [
      'input[0].content[0].file_id',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
    ],
    [
      'input[0].content[0].file_id',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] },
    ],
    ['input[0]', { input: [{ type: 'custom_tool_call', call_id: 'c', name: 'x' }] }],
    ['input[0].call_id', { input: [{ type: 'custom_tool_call_output', call_id: 'c', output: 'x' }] }],
    ['input[0].author', { input: [{ type: 'agent_message', content: 'x' }] }],
    [
      'input[0].content[0]',
      {
        input: [
          {
            type: 'agent_message',
            author: 'a',
            recipient: 'b',
            content: [{ type: 'encrypted_content', encrypted_content: 'gAAAAx' }],
          },
        ],
      },
    ],
  ])('and input items are rejected with a 400 that names %s if they cannot be served', async (param, body) => {
    tap.takeReceived();
    const { status, body: refused } = await ask({ model: NATIVE, input: 'Hi', ...body });
    expect([status, refused.error.param]).toEqual([400, param]);
    expect(tap.takeReceived()).toEqual([]);
  });
});
