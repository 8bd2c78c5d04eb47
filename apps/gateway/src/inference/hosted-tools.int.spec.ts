/**
 * Hosted tools, which providers run and bill. Chats and responses with one are rejected, except for the types of web
 * search that the gateway supports.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openTappedWorld, type TappedWorld, type TestAccount, type TestWorld, type Wiretap } from '#testing';

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ tap, world } = tapped);
  account = await world.createAccount(1_050);
});
afterAll(() => tapped.close());

/** Types of hosted tools as providers document them. Their options do not matter here. */
const HOSTED: Readonly<Record<string, readonly string[]>> = {
  OpenAI: [
    'apply_patch',
    'code_interpreter',
    'computer',
    'computer_use_preview',
    'file_search',
    'image_generation',
    'local_shell',
    'mcp',
    'shell',
    'tool_search',
  ],
  Anthropic: [
    'bash_20250124',
    'code_execution_20250522',
    'code_execution_20250825',
    'computer_20251124',
    'mcp_toolset',
    'memory_20250818',
    'text_editor_20250728',
    'tool_search_tool_bm25_20251119',
    'tool_search_tool_regex_20251119',
    'web_fetch_20250910',
    'web_search_20250305',
  ],
  OpenRouter: ['openrouter:datetime', 'openrouter:image_generation', 'openrouter:web_fetch'],
  xAI: ['collections_search', 'live_search', 'view_image', 'view_x_video', 'x_search'],
  Google: [
    'code_execution',
    'enterprise_web_search',
    'google_maps',
    'google_search',
    'google_search_retrieval',
    'url_context',
  ],
  Groq: ['browser_automation', 'browser_search', 'visit_website', 'wolfram_alpha'],
  Mistral: ['document_library', 'web_search_premium'],
};
const hosted = Object.entries(HOSTED).flatMap(([vendor, types]) => types.map((type) => [vendor, type] as const));

/** In this order: chat completions, only Responses, a router, open weights, Anthropic's Messages. */
const MODELS = [
  'openai/gpt-5-mini',
  'openai/gpt-5-codex',
  'google/gemini-2.5-pro',
  'qwen/qwen3-coder',
  'anthropic/claude-haiku-4.5',
];
const messages = [{ role: 'user', content: '[[sandbox tokens=2]]' }];
const chat = (body: object) => world.post('/v1/chat/completions', { messages, max_tokens: 20, ...body }, account);

async function charges(): Promise<number> {
  return (await world.listEvents(account)).filter(({ type }) => type === 'HoldSettled').length;
}

async function expectRefused(answering: ReturnType<typeof chat>, name: string, param: string | null) {
  const before = await charges();
  const { status, body, text } = await answering;
  expect([status, text]).toEqual([400, expect.stringContaining(`\\"${name}\\"`)]);
  if (param !== null) expect(body.error.param).toBe(param);
  expect(tap.takeReceived()).toEqual([]);
  expect(await charges()).toBe(before);
}

describe('a hosted tool', () => {
  test.each(hosted)('is rejected in a chat with an error that names the tool: %s, %s', async (_, type) => {
    for (const model of MODELS) await expectRefused(chat({ model, tools: [{ type }] }), type, null);
  });

  test.each(hosted)('is rejected in a response with an error that names the tool: %s, %s', async (_, type) => {
    const asked = world.post('/v1/responses', { model: MODELS[0], input: 'Hi', tools: [{ type }] }, account);
    await expectRefused(asked, type, 'tools[0].type');
  });

  test('is rejected among functions and in a stream', async () => {
    const [model] = MODELS;
    const tools = [
      { type: 'function', function: { name: 'f' } },
      { type: 'mcp', server_url: 'https://a.example' },
    ];
    await expectRefused(chat({ model, tools, stream: true }), 'mcp', 'tools[1].type');
  });

  test.each([{ google_search: {} }, { function: { name: 'f' } }, { type: null, function: { name: 'f' } }])(
    'is not guessed from its fields: a chat with the tool %j, which has no type, is rejected',
    async (tool) => {
      const before = (await world.listEvents(account)).length;
      for (const model of MODELS) {
        const { status, body } = await chat({ model, tools: [tool] });
        expect([status, body.error.param]).toEqual([400, 'tools[0].type']);
      }
      expect(tap.takeReceived()).toEqual([]);
      expect((await world.listEvents(account)).length).toBe(before);
    },
  );

  test('is rejected before money is held', async () => {
    const before = (await world.listEvents(account)).length;
    await expectRefused(chat({ model: MODELS[0], tools: [{ type: 'mcp' }] }), 'mcp', 'tools[0].type');
    expect((await world.listEvents(account)).length).toBe(before);
  });

  test('is rejected in a tool choice', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const asked = chat({ model: MODELS[0], tools, tool_choice: { type: 'mcp', server_label: 's' } });
    await expectRefused(asked, 'mcp', 'tool_choice.type');
  });
});

/** A minimal document. For a model without file input, a router would convert it by OCR at a price per page. */
const PDF = 'data:application/pdf;base64,JVBERi0=';
/** Models that support more than text. */
const SEEING = MODELS.filter((model) => !model.startsWith('qwen'));
const OCR = ['deepseek/deepseek-r1', 'openai/gpt-oss-20b:free', 'mistralai/mistral-large-3'];

test.each([
  ['type', { type: 'item_reference', id: 'x' }, MODELS],
  ['type', { type: 'input_file', file_url: 'https://a.example/a.pdf' }, MODELS],
  ['type', { type: 'container_upload', file_id: 'file-1' }, MODELS],
  ['file.file_id', { type: 'file', file: { file_id: 'file-1', file_data: 'data:text/plain,a' } }, SEEING],
  ['file.file_url', { type: 'file', file: { file_url: 'ftp://a.example/a.pdf' } }, SEEING],
  ['image_url.url', { type: 'image_url', image_url: { url: PDF } }, SEEING],
  ['type', { type: 'file', file: { file_data: PDF } }, OCR],
  ['type', { type: 'video_url', video_url: { url: 'https://a.example/a.mp4' } }, OCR],
])(
  'rejects content that has no price or no bound before money is held, and names the field %s: %j',
  async (param, part, models) => {
    const before = (await world.listEvents(account)).length;
    for (const model of models) {
      const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, part] }];
      const { status, body } = await chat({ model, messages });
      expect([model, status, body.error?.param]).toEqual([model, 400, `messages[0].content[1].${param}`]);
    }
    expect(tap.takeReceived()).toEqual([]);
    expect((await world.listEvents(account)).length).toBe(before);
  },
);

test('rejects output modalities other than text', async () => {
  const asked = chat({ model: 'openai/gpt-4o-mini', modalities: ['text', 'audio'], audio: { voice: 'a' } });
  await expectRefused(asked, 'audio', 'modalities');
});

test('does not forward fields that would change the bill', async () => {
  const body = {
    service_tier: 'priority',
    prediction: { type: 'content', content: 'x' },
    web_search_options: {},
    store: true,
    models: ['openai/gpt-5.4'],
    route: 'fallback',
    transforms: ['middle-out'],
    prompt_cache_retention: '24h',
    provider: { only: ['openai'], service_tier: 'flex' },
  };
  for (const model of MODELS) {
    const { status } = await chat({ model, ...body, provider: undefined });
    expect(status).toBe(200);
    const [received] = tap.takeReceived();
    const sent = JSON.stringify(received?.body);
    for (const name of Object.keys(body))
      if (!['store', 'provider', 'service_tier'].includes(name))
        expect([name, sent]).toEqual([name, expect.not.stringContaining(`"${name}"`)]);
    expect(received?.body.store ?? false).toBe(false);
    expect(received?.body.service_tier).not.toBe('priority');
  }
});

test('forwards functions, images, files and audio to a model that supports them', async () => {
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
  const data = 'data:application/pdf;base64,JVBERi0=';
  const content = [
    { type: 'text', text: '[[sandbox tokens=2]]' },
    { type: 'image_url', image_url: { url: 'https://a.example/a.png', detail: 'low' } },
    { type: 'file', file: { filename: 'a.pdf', file_data: data } },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
  ];
  const asked = { model: 'google/gemini-2.5-pro', messages: [{ role: 'user', content }], tools };
  expect((await chat(asked)).status).toBe(200);
  expect(tap.takeReceived()[0]?.body).toMatchObject({ messages: asked.messages, tools });
});
