/**
 * What happens to each member of the requests of Anthropic's SDK: on the request, its tools and its content blocks. A
 * member or a type that a new version of the SDK adds does not compile until it is listed here.
 */
import type { Anthropic } from '@anthropic-ai/sdk';
import { describe, expect, test } from '@jest/globals';
import { parseMessagesRequest } from './request.ts';

/** Values that change the chat, that change nothing, and that are rejected with the path of the member. */
interface Outcome {
  readonly used?: readonly unknown[];
  readonly ignored?: readonly unknown[];
  readonly rejected?: readonly unknown[];
  /** Path of the rejected part, if it is not the member itself. */
  readonly at?: string;
}

type KeysOf<T> = T extends unknown ? keyof T : never;
type Outcomes<Name extends PropertyKey> = Readonly<Record<Name, Outcome>>;

type Params = Anthropic.Beta.MessageCreateParams | Anthropic.MessageCreateParams;
type ToolParam = Anthropic.Beta.BetaToolUnion | Anthropic.ToolUnion;
type BlockParam = Anthropic.Beta.BetaContentBlockParam | Anthropic.ContentBlockParam;

const user = { role: 'user', content: 'Hello' };
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const mark = { type: 'ephemeral' };
const tool = { name: 'f', input_schema: { type: 'object' } };
const edit = (keep?: unknown) => ({ edits: [{ type: 'clear_thinking_20251015', ...(keep ? { keep } : {}) }] });

/** Fields that are sent as headers. */
const HEADER: Outcome = {};

const REQUEST: Outcomes<KeysOf<Params>> = {
  model: { used: ['other'] },
  messages: { used: [[user, { role: 'assistant', content: 'Hi' }]] },
  max_tokens: { used: [9] },
  system: { used: ['Be brief'] },
  tools: { used: [[tool]] },
  tool_choice: { used: [], ignored: [{ type: 'auto' }] }, // used with tools only, see request.spec.ts
  thinking: { used: [{ type: 'adaptive' }], ignored: [{ type: 'disabled' }] },
  output_config: {
    used: [{ format: { type: 'json_schema', schema } }],
    rejected: [{ task_budget: { type: 'tokens', total: 9 } }],
    at: 'output_config.task_budget',
  },
  output_format: { used: [{ type: 'json_schema', schema }] },
  stop_sequences: { used: [['END']], ignored: [[]] },
  stream: { used: [true] },
  metadata: { used: [{ user_id: 'ada' }] },
  cache_control: { used: [mark] },
  service_tier: { ignored: ['auto', 'standard_only'] },
  diagnostics: { ignored: [{ previous_message_id: 'msg_1' }] },
  billing_policy: {
    ignored: [null, { type: 'billing_policy', bill_to: 'self' }],
    rejected: [{ type: 'billing_policy', bill_to: 'user_profile' }],
  },
  compaction: { ignored: [null], rejected: [{ type: 'summarize' }] },
  container: { ignored: [null], rejected: ['container_1', { skills: [{ type: 'anthropic', skill_id: 'pdf' }] }] },
  context_management: {
    ignored: [null, { edits: [] }, edit('all'), edit({ type: 'all' })], // other edits: below
    rejected: [{ edits: [{ type: 'clear_tool_uses_20250919' }] }, { edits: [{ type: 'compact_20260112' }] }],
    at: 'context_management.edits[0].type',
  },
  fallback_credit_token: { ignored: [null], rejected: ['token', { token: 'token' }] },
  fallbacks: { ignored: [null, [], 'default'], rejected: [[{ model: 'n' }]] },
  inference_geo: { ignored: [null], rejected: ['us'] },
  mcp_servers: { ignored: [[]], rejected: [[{ type: 'url', name: 's', url: 'https://a.example' }]] },
  speed: { ignored: [null, 'standard'], rejected: ['fast'] },
  thread: { ignored: [null], rejected: [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }] },
  betas: HEADER,
  user_profile_id: HEADER,
  workspace_id: HEADER,
};

const CALLERS = ['direct', 'code_execution_20260120'];

/** Members of tools, in a tool of the caller or, for those that only another tool has, in that tool. */
const TOOL: Outcomes<KeysOf<ToolParam>> = {
  name: { used: ['g'] },
  type: { ignored: ['custom', null] },
  description: { used: ['F'] },
  input_schema: { used: [schema] },
  input_examples: { used: [[{ a: 'x' }]], ignored: [[]], rejected: ['x', [1]] },
  strict: { used: [true], ignored: [false] },
  cache_control: { used: [mark] },
  allowed_callers: { ignored: [CALLERS, ['direct'], []], rejected: [['code_execution_20260120']] },
  response_inclusion: { ignored: ['full'], rejected: ['excluded'] },
  // All tools are loaded at once, and arguments are sent as they arrive.
  defer_loading: { ignored: [true, false] },
  eager_input_streaming: { ignored: [true, null] },
  // Of the web search: see request.spec.ts.
  max_uses: {},
  allowed_domains: {},
  blocked_domains: {},
  user_location: {},
  // Of tools that the client runs: see client-tools.spec.ts.
  display_height_px: {},
  display_width_px: {},
  display_number: {},
  enable_zoom: {},
  max_characters: {},
  // Of tools that are rejected altogether.
  citations: {},
  max_content_tokens: {},
  url_sources: {},
  use_cache: {},
  model: {},
  max_tokens: {},
  caching: {},
  mcp_server_name: {},
  configs: {},
  default_config: {},
  tools: {},
};

const SERVED: Outcome = { used: [{}] };
const REJECTED: Outcome = { rejected: [{}] };
const BASH: Outcome = { used: [{ name: 'bash' }] };
const FIRST_EDITOR: Outcome = { used: [{ name: 'str_replace_editor' }] };
const EDITOR: Outcome = { used: [{ name: 'str_replace_based_edit_tool' }] };
const MEMORY: Outcome = { used: [{ name: 'memory' }] };
const COMPUTER: Outcome = { used: [{ name: 'computer', display_width_px: 1_024, display_height_px: 768 }] };

const TOOL_TYPES: Outcomes<NonNullable<Exclude<ToolParam, { name: string; input_schema: object }>['type']>> = {
  web_search_20250305: SERVED,
  web_search_20260209: SERVED,
  web_search_20260318: SERVED,
  bash_20241022: BASH,
  bash_20250124: BASH,
  text_editor_20241022: FIRST_EDITOR,
  text_editor_20250124: FIRST_EDITOR,
  text_editor_20250429: EDITOR,
  text_editor_20250728: EDITOR,
  memory_20250818: MEMORY,
  computer_20241022: COMPUTER,
  computer_20250124: COMPUTER,
  computer_20251124: COMPUTER,
  computer_toolset_20260801: REJECTED,
  browser_toolset_20260801: REJECTED,
  code_execution_20250522: REJECTED,
  code_execution_20250825: REJECTED,
  code_execution_20260120: REJECTED,
  code_execution_20260521: REJECTED,
  web_fetch_20250910: REJECTED,
  web_fetch_20260209: REJECTED,
  web_fetch_20260309: REJECTED,
  web_fetch_20260318: REJECTED,
  advisor_20260301: REJECTED,
  tool_search_tool_bm25_20251119: REJECTED,
  tool_search_tool_bm25: REJECTED,
  tool_search_tool_regex_20251119: REJECTED,
  tool_search_tool_regex: REJECTED,
  mcp_toolset: REJECTED,
};

const image = { type: 'base64', media_type: 'image/png', data: 'AA==' };
/** Blocks of each type as they are sent in an assistant's turn, and whether they are part of the chat. */
const BLOCK_TYPES: Outcomes<BlockParam['type']> = {
  text: { used: [{ text: 'Hi' }] },
  image: { used: [{ source: image }], rejected: [{ source: { type: 'file', file_id: 'f' } }], at: '.source' },
  document: { used: [{ source: { type: 'text', data: 'Hi' } }] },
  search_result: { used: [{ title: 'T', source: 's', content: [] }] },
  thinking: { used: [{ thinking: 'Hm', signature: 's' }] },
  redacted_thinking: { used: [{ data: 'x' }] },
  tool_use: { used: [{ id: 'a', name: 'f', input: {} }] },
  tool_result: REJECTED, // belongs in a user's turn
  server_tool_use: { ignored: [{ id: 's', name: 'web_search', input: {} }], rejected: [{ name: 'web_fetch' }] },
  web_search_tool_result: { ignored: [{ tool_use_id: 's', content: [] }] },
  web_fetch_tool_result: REJECTED,
  advisor_tool_result: REJECTED,
  code_execution_tool_result: REJECTED,
  bash_code_execution_tool_result: REJECTED,
  text_editor_code_execution_tool_result: REJECTED,
  tool_search_tool_result: REJECTED,
  mcp_tool_use: REJECTED,
  mcp_tool_result: REJECTED,
  mcp_tool_listing: REJECTED,
  container_upload: REJECTED,
  compaction: REJECTED,
  tool_addition: REJECTED,
  tool_removal: REJECTED,
  fallback: REJECTED,
};

/** Optional members of content blocks, with the block that has them. */
const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } };
const BLOCKS: Readonly<Record<string, readonly [block: object, outcome: Outcome]>> = {
  cache_control: [document, { used: [mark] }],
  title: [document, { used: ['T'] }],
  context: [document, { used: ['C'] }],
  citations: [document, { ignored: [{ enabled: false }, {}, null], rejected: [{ enabled: true }] }],
  transformations: [
    { type: 'image', source: image },
    { ignored: [{ oversized_image: 'downsize' }, {}], rejected: [{ oversized_image: 'error' }] },
  ],
};

const baseRequest = { model: 'm', max_tokens: 2_000, messages: [user] };
const convert = (more: object) => parseMessagesRequest({ ...baseRequest, ...more });

/** Checks the outcomes of one member. @param send converts a request with this value of it, or without it */
async function check(send: (value?: unknown) => Promise<unknown>, outcome: Outcome, param: string): Promise<void> {
  const { used = [], ignored = [], rejected = [] } = outcome;
  const without = used.length + ignored.length > 0 ? JSON.stringify(await send()) : '';
  for (const value of used) expect([value, JSON.stringify(await send(value)) === without]).toEqual([value, false]);
  for (const value of ignored) expect([value, JSON.stringify(await send(value))]).toEqual([value, without]);
  for (const value of rejected)
    await expect(send(value)).rejects.toThrow(expect.objectContaining({ status: 400, param }));
}

describe("each member of a request of Anthropic's SDK is used, changes nothing, or is rejected by name", () => {
  test.each(Object.entries(REQUEST))('%s', async (name, outcome) => {
    await check((value) => convert(value === undefined ? {} : { [name]: value }), outcome, outcome.at ?? name);
  });

  test.each(Object.entries(TOOL))('tools[0].%s', async (name, outcome) => {
    const send = (value: unknown) =>
      convert({ tools: [{ ...tool, ...(value === undefined ? {} : { [name]: value }) }] });
    await check(send, outcome, `tools[0].${name}`);
  });

  test.each(Object.entries(TOOL_TYPES))('tools of the type %s', async (type, outcome) => {
    await check(
      (value) => convert(value ? { tools: [{ type, name: 'web_search', ...value }] } : {}),
      outcome,
      'tools[0].type',
    );
  });

  test.each(Object.entries(BLOCK_TYPES))('blocks of the type %s', async (type, outcome) => {
    const text = { type: 'text', text: 'Yes' };
    const send = (value?: unknown) =>
      convert({
        messages: [user, { role: 'assistant', content: [text, ...(value ? [{ type, ...value }] : [])] }, user],
      });
    await check(send, outcome, `messages[1].content[1]${outcome.at ?? '.type'}`);
  });

  test.each(Object.entries(BLOCKS))('%s of content blocks', async (name, [block, outcome]) => {
    const send = (value?: unknown) =>
      convert({
        messages: [{ role: 'user', content: [{ ...block, ...(value === undefined ? {} : { [name]: value }) }] }],
      });
    await check(send, outcome, `messages[0].content[0].${name}`);
  });

  test('members of system messages', async () => {
    const send = (more: object, ...rest: object[]) =>
      convert({ messages: [user, { role: 'system', content: 'Be brief', ...more }, ...rest] });
    const rolesOf = async (...sent: Parameters<typeof send>) =>
      (await send(...sent)).chat.messages.map(({ role }) => role);
    expect(await rolesOf({ clear_at: 'never', output_config: {} }, user)).toEqual(['user', 'system', 'user']);
    expect(await rolesOf({ clear_at: 'next_user_message' })).toEqual(['user', 'system']);
    expect(await rolesOf({ clear_at: 'next_user_message' }, user)).toEqual(['user', 'user']);
    expect(await rolesOf({ content: [], output_config: { effort: 'low' } })).toEqual(['user']);
  });

  test('members of thinking', async () => {
    const send = (prefix_mismatch_behavior: string | null) =>
      convert({ thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior } } });
    expect(await send('drop_block')).toEqual(await send(null));
    const rejection = expect.objectContaining({ status: 400, param: 'thinking.block_binding' });
    await expect(send('error')).rejects.toThrow(rejection);
  });
});

describe('an edit that clears thinking', () => {
  const thinks = (thinking: string, ...more: object[]) => ({
    role: 'assistant',
    content: [{ type: 'thinking', thinking, signature: 's' }, ...more],
  });
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (tool_use_id: string) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id }] });
  const messages = [
    user,
    thinks('a', use('1')),
    result('1'),
    thinks('b'),
    user,
    { role: 'assistant', content: 'Hi' },
    user,
    thinks('c', use('2')),
    result('2'),
    thinks('d', use('3')),
    result('3'),
  ];

  test.each([
    ['all', undefined, 'abcd'],
    ['the last two turns', { type: 'thinking_turns', value: 2 }, 'abcd'],
    ['the last turn', { type: 'thinking_turns', value: 1 }, 'cd'],
  ])('retains %s, including the calls within a turn', async (_, keep, kept) => {
    const context_management = keep && edit(keep);
    const { chat } = await convert({ messages, ...(context_management ? { context_management } : {}) });
    const details = chat.messages.flatMap(({ reasoning_details }) => (reasoning_details ?? []) as { text: string }[]);
    expect(details.map(({ text }) => text).join('')).toBe(kept);
  });

  test('retains the last turn by default, and is rejected with another number', async () => {
    expect(await convert({ messages, context_management: edit() })).toEqual(
      await convert({ messages, context_management: edit({ type: 'thinking_turns', value: 1 }) }),
    );
    const param = 'context_management.edits[0].keep';
    await expect(convert({ context_management: edit({ type: 'thinking_turns', value: 0 }) })).rejects.toThrow(
      expect.objectContaining({ status: 400, param }),
    );
  });
});
