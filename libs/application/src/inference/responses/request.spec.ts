import { describe, expect, test } from '@jest/globals';
import { InvalidRequestError, parseResponsesRequest, type ResponsesBody } from '#application';
import { sampleSize } from '#testing';

const read = (more: object = {}, earlier = []) =>
  parseResponsesRequest({ model: 'm', input: 'Hi', ...more } as ResponsesBody, earlier);
const messagesOf = (input: unknown) => read({ input }).chat.messages;
const USER = { role: 'user', content: 'Hi' };

const list = <T>(length: number, create: (i: number) => T) => Array.from({ length }, (_, i) => create(i));
const tools = (n: number) => list(n, (i) => ({ type: 'function', name: `f${i}` }));
const CALL = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'f',
  arguments: '{"a":1}',
  status: 'completed',
};
const TOOL_CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };

describe('converting the input to messages', () => {
  test.each<[string, unknown, unknown[]]>([
    ['converts text to a user message', 'Hi', [USER]],
    ['converts items with a role, whether or not they have a type', [USER, { type: 'message', ...USER }], [USER, USER]],
    [
      'converts the content parts of a user message',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: 'https://x.example/a.png', detail: 'low' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
            { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
            { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
          ],
        },
      ],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'https://x.example/a.png', detail: 'low' } },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
            { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
          ],
        },
      ],
    ],
    [
      'converts developer messages to system messages, which every model supports',
      [
        {
          role: 'developer',
          content: [
            { type: 'input_text', text: 'Be ' },
            { type: 'input_text', text: 'brief' },
          ],
        },
        USER,
      ],
      [{ role: 'system', content: 'Be brief' }, USER],
    ],
    [
      'converts returned output without its reasoning and its searches',
      [
        USER,
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }] },
        { type: 'web_search_call', id: 'ws_1', status: 'completed' },
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Yes', annotations: [] }],
        },
      ],
      [USER, { role: 'assistant', content: 'Yes' }],
    ],
    [
      'converts a refusal',
      [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'No' }] }, USER],
      [{ role: 'assistant', content: null, refusal: 'No' }, USER],
    ],
    [
      'converts a call and its output',
      [USER, CALL, { type: 'function_call_output', call_id: 'call_1', output: '42' }],
      [
        USER,
        { role: 'assistant', content: null, tool_calls: [TOOL_CALL] },
        { role: 'tool', tool_call_id: 'call_1', content: '42' },
      ],
    ],
    [
      'combines the calls of a turn and the text before them into one message',
      [
        { role: 'assistant', content: 'Let me see' },
        CALL,
        { ...CALL, call_id: 'call_2' },
        { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: '4' }] },
        { type: 'function_call_output', call_id: 'call_1', output: '' },
        { ...CALL, call_id: 'call_3' },
      ],
      [
        { role: 'assistant', content: 'Let me see', tool_calls: [TOOL_CALL, { ...TOOL_CALL, id: 'call_2' }] },
        { role: 'tool', tool_call_id: 'call_2', content: '4' },
        { role: 'tool', tool_call_id: 'call_1', content: '' },
        { role: 'assistant', content: null, tool_calls: [{ ...TOOL_CALL, id: 'call_3' }] },
      ],
    ],
  ])('%s', (_, input, messages) => {
    expect(messagesOf(input)).toEqual(messages);
  });

  test('puts instructions and earlier items first, and does not store instructions', () => {
    const earlier = [
      { role: 'user', content: '1' },
      { role: 'assistant', content: '2' },
    ] as never;
    const { chat, inputItems: said } = read({ instructions: 'Be brief' }, earlier);
    expect(chat.messages).toEqual([{ role: 'system', content: 'Be brief' }, ...(earlier as []), USER]);
    expect(said).toEqual([...(earlier as []), { type: 'message', ...USER }]);
  });

  test('accepts an output for a call of the stored conversation', () => {
    const input = [{ type: 'function_call_output', call_id: 'call_1', output: '42' }];
    const { chat, inputItems: said } = read({ input }, [CALL] as never);
    expect(chat.messages.at(-1)).toEqual({ role: 'tool', tool_call_id: 'call_1', content: '42' });
    expect(said).toEqual([CALL, ...input]);
  });
});

/** So many that work that grows with the square of their number takes minutes if all cases are tested. */
const MANY = sampleSize(300_000, 30_000);

test('many calls and their outputs are converted in linear time', () => {
  const many = Array.from({ length: MANY }, (_, i) => ({ ...CALL, call_id: `call_${i}` }));
  const outputs = many.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: '' }));
  expect(messagesOf([...many, ...outputs])).toHaveLength(MANY + 1);
});

describe('the work grows only with the size of the request:', () => {
  const toCall = (i: number) => ({ ...CALL, call_id: `c${i}` });
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==' };
  const reasoning = { type: 'reasoning', encrypted_content: `chat-reasoning.${btoa('[{}]')}` };

  test.each<[string, number, (n: number) => object]>([
    [
      'outputs of one call',
      MANY,
      (n) => ({
        input: [toCall(1), ...list(n, () => ({ type: 'function_call_output', call_id: 'c1', output: [image] }))],
      }),
    ],
    // About as many as the limit of their characters permits.
    [
      'reasoning between the calls of one turn',
      sampleSize(90_000, 9_000),
      (n) => ({ input: list(n, (i) => [reasoning, toCall(i)]).flat() }),
    ],
    [
      'fields and changes of settings',
      MANY / 3,
      (n) => ({
        input: [USER, ...list(n, () => ({ type: 'configuration_update', reasoning: { effort: 'low' } }))],
        ...Object.fromEntries(list(n, (i) => [`n${i}`, 1])),
      }),
    ],
  ])('%s', (_, count, create) => {
    expect(read(create(count)).chat.messages.length).toBeGreaterThan(0);
  });
});

test('the tools of a request are limited, and so are those that it allows', () => {
  const declare = (n: number) => [{ type: 'namespace', name: 'n', tools: tools(n) }];
  const allow = (n: number) => ({ type: 'allowed_tools', tools: list(n, () => ({ type: 'function', name: 'f0' })) });
  const additional = { type: 'additional_tools', tools: tools(1) };
  const rejected = (param: string) => expect.objectContaining({ status: 400, param });
  // the namespace counts as one
  expect(() => read({ input: [USER], tools: declare(4_095), tool_choice: allow(4_096) })).not.toThrow();
  expect(() => read({ input: [USER], tools: declare(4_096) })).toThrow(rejected('tools[0].tools'));
  expect(() => read({ input: [USER, additional], tools: declare(4_095) })).toThrow(rejected('input[1].tools'));
  expect(() => read({ input: [USER], tools: declare(1), tool_choice: allow(4_097) })).toThrow(
    rejected('tool_choice.tools'),
  );
});

test('the inputs of custom calls and the summaries are limited in total', () => {
  const call = (input: string) => ({ type: 'custom_tool_call', call_id: 'a', name: 'f', input });
  const summary = { type: 'compaction', encrypted_content: `chat-compaction.${'QUJD'.repeat(1024 * 1024)}` };
  const half = call('x'.repeat(4 * 1024 * 1024 - 64));
  expect(() => read({ input: [summary, half] })).not.toThrow();
  expect(() => read({ input: [half, summary, call('x'.repeat(64))] })).toThrow(
    expect.objectContaining({ status: 400, param: 'input[2].input' }),
  );
  expect(() => read({ input: [half, half, summary] })).toThrow(
    expect.objectContaining({ status: 400, param: 'input[2].encrypted_content' }),
  );
});

describe('converting fields to fields of a chat', () => {
  const FUNCTION = { name: 'f', description: 'F', parameters: { type: 'object' }, strict: true };
  const SCHEMA = { name: 's', schema: { type: 'object' }, strict: true };
  const TOOLS = { tools: [{ type: 'function', ...FUNCTION }] };
  test.each<[string, object, object]>([
    ['a request without fields', {}, {}],
    ['null fields', { instructions: null, max_output_tokens: null, temperature: null, tools: null, text: null }, {}],
    [
      'fields with the same name',
      { temperature: 0, top_p: 0.5, user: 'u', stream: true, presence_penalty: 1, provider: { zdr: true } },
      { temperature: 0, top_p: 0.5, user: 'u', stream: true, presence_penalty: 1, provider: { zdr: true } },
    ],
    ['the output limit', { max_output_tokens: 5 }, { max_completion_tokens: 5 }],
    ['reasoning', { reasoning: { effort: 'low', exclude: true } }, { reasoning: { effort: 'low', exclude: true } }],
    ['verbosity', { text: { verbosity: 'low' } }, { verbosity: 'low' }],
    ['other fields to nothing', { metadata: { a: 1 }, include: ['x'], truncation: 'auto', store: false, n: 7 }, {}],
    ['the text format to nothing', { text: { format: { type: 'text' } } }, {}],
    ['a JSON format', { response_format: { type: 'json_object' } }, { response_format: { type: 'json_object' } }],
    [
      'a flat schema',
      { text: { format: { type: 'json_schema', ...SCHEMA } } },
      { response_format: { type: 'json_schema', json_schema: SCHEMA } },
    ],
    [
      'a nested schema',
      { response_format: { type: 'json_schema', json_schema: SCHEMA } },
      { response_format: { type: 'json_schema', json_schema: SCHEMA } },
    ],
    [
      'flat tools and a tool choice',
      { ...TOOLS, tool_choice: { type: 'function', name: 'f' }, parallel_tool_calls: false },
      {
        tools: [{ type: 'function', function: FUNCTION }],
        tool_choice: { type: 'function', function: { name: 'f' } },
        parallel_tool_calls: false,
      },
    ],
    [
      'nested tools',
      { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'required' },
      { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'required' },
    ],
    [
      'web searches with two of their names',
      {
        tools: [
          { type: 'web_search_preview_2025_03_11' },
          { type: 'openrouter:web_search', parameters: { engine: 'exa' } },
        ],
      },
      { tools: [{ type: 'web_search' }, { type: 'web_search', parameters: { engine: 'exa' } }], tool_choice: 'auto' },
    ],
    ['a tool choice without tools to nothing', { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, {}],
  ])('converts %s', (_, sent, expected) => {
    expect(read(sent).chat).toEqual({ model: 'm', messages: [USER], ...expected });
  });

  test('returns tools, tool choice and format in the flat format, and unchanged metadata, for the response', () => {
    const { toolset, format, metadata } = read({
      tools: [
        { type: 'function', function: FUNCTION },
        { type: 'function', name: 'g' },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: SCHEMA },
      metadata: { a: 'x', b: 1.5, c: false },
    });
    expect(toolset.tools).toEqual([
      { type: 'function', ...FUNCTION },
      { type: 'function', name: 'g', parameters: null, strict: null },
    ]);
    expect(toolset.choice).toEqual({ type: 'function', name: 'f' });
    expect(format).toEqual({ type: 'json_schema', ...SCHEMA });
    expect(metadata).toEqual({ a: 'x', b: 1.5, c: false });
  });

  test('applies the latest update of each setting in the conversation, and rejects invalid updates', () => {
    const update = (more: object) => ({ type: 'configuration_update', ...more });
    const format = { type: 'json_object' };
    const earlier = [update({ reasoning: { effort: 'high' } }), update({ text: { format } })] as never;
    const { chat, native } = read({ reasoning: { effort: 'low', summary: 'auto' } }, earlier);
    expect(chat).toMatchObject({ reasoning: { effort: 'high', summary: 'auto' }, response_format: format });
    expect(native.body.reasoning).toEqual({ effort: 'high', summary: 'auto' });
    const input = [USER, update({ reasoning: { effort: 'minimal' }, text: null })];
    expect(read({ input }, earlier).chat.reasoning).toEqual({ effort: 'minimal' });
    for (const wrong of [{ reasoning: 'low' }, { text: [] }, { reasoning: { effort: 1 } }]) {
      expect(() => read({ input: [USER, update(wrong)] })).toThrow(/^input\[1\]\./);
    }
  });

  test.each<[object, boolean]>([
    [{}, true],
    [{ store: false }, false],
    [{ provider: { zdr: true } }, false],
    [{ provider: { data_collection: 'deny' } }, false],
    [{ provider: { zdr: true }, store: true }, true],
    [{ provider: { zdr: false } }, true],
  ])('derives from %j whether the response is stored: %p', (sent, store) => {
    expect(read(sent).store).toBe(store);
  });
});

test.each([1, 3])('reasoning that takes long to parse is rejected, in %i items', (count) => {
  const encrypted_content = `chat-reasoning.${btoa(`[${'{},'.repeat(120_000 / count)}{}]`)}`;
  const input = [USER, ...Array.from({ length: count }, () => ({ type: 'reasoning', encrypted_content }))];
  expect(() => read({ input })).toThrow(
    expect.objectContaining({ status: 400, param: `input[${count}].encrypted_content` }),
  );
});

describe('an invalid request', () => {
  const part = (content: unknown) => ({ input: [{ role: 'user', content: [content] }] });
  test.each<[string, object]>([
    ['background', { background: true }],
    ['conversation', { conversation: 'conv_1' }],
    ['prompt', { prompt: { id: 'p' } }],
    ['input', { input: [{ type: 'reasoning' }] }],
    ['input[0]', { input: ['Hi'] }],
    ['input[0]', { input: [null] }],
    ['input[1].type', { input: [USER, { type: 'item_reference', id: 'msg_1' }] }],
    ['input[0].role', { input: [{ role: 'tool', content: 'x' }] }],
    ['input[0].role', { input: [{}] }],
    ['input[0].content', { input: [{ role: 'user' }] }],
    ['input[0].content', { input: [{ role: 'user', content: ['Hi'] }] }],
    ['input[0].content', { input: [{ role: 'system', content: 7 }] }],
    ['input[0].content[0]', { input: [{ role: 'system', content: [{ type: 'input_image', image_url: 'x' }] }] }],
    ['input[0].content[0].type', part({ type: 'input_video' })],
    ['input[0].content[0].type', part({})],
    ['input[0].content[0].text', part({ type: 'input_text' })],
    ['input[0].content[0].file_id', part({ type: 'input_image', file_id: 'file_1' })],
    ['input[0].content[0].image_url', part({ type: 'input_image' })],
    ['input[0].content[0].file_id', part({ type: 'input_file', file_id: 'file_1' })],
    ['input[0]', { input: [{ ...CALL, arguments: {} }] }],
    ['input[0].call_id', { input: [{ type: 'function_call_output', call_id: 'call_9', output: 'x' }] }],
    ['input[1].output', { input: [CALL, { type: 'function_call_output', call_id: 'call_1' }] }],
    ['tools[0]', { tools: ['f'] }],
    ['tools[0].name', { tools: [{ type: 'function' }] }],
    ...['file_search', 'code_interpreter', 'mcp', 'image_generation', 'computer_use_preview'].map(
      (type) => ['tools[0].type', { tools: [{ type }] }] as [string, object],
    ),
    ['tool_choice', { tool_choice: 'any' }],
    ['tool_choice', { tool_choice: { type: 'function' } }],
    ['tool_choice', { tool_choice: { type: 'mcp', name: 'x' } }],
    ['text.format', { text: { format: { type: 'xml' } } }],
    ['text.format', { text: { format: 'text' } }],
    ['text.format.name', { text: { format: { type: 'json_schema', schema: {} } } }],
    ['text.format.schema', { response_format: { type: 'json_schema', json_schema: { name: 's' } } }],
    ['metadata.a', { metadata: { a: null } }],
    ['metadata.a', { metadata: { a: {} } }],
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`t${i}`, i])) }],
  ])('is rejected with the path of the invalid field: %s in %j', (param, sent) => {
    const refused = () => read(sent);
    expect(refused).toThrow(InvalidRequestError);
    expect(refused).toThrow(expect.objectContaining({ status: 400, param }));
  });
});
