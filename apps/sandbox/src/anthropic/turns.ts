/** Validates the conversation of a Messages request as Anthropic does. */
import { invalidRequestError } from './errors.ts';
import { ENCRYPTED } from './searches.ts';

export interface MessageBlock {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  readonly input?: unknown;
  readonly thinking?: unknown;
  readonly signature?: unknown;
  readonly tool_use_id?: unknown;
  readonly source?: Readonly<Record<string, unknown>>;
  readonly content?: unknown;
  readonly cache_control?: unknown;
}

export interface MessageTurn {
  readonly role: 'user' | 'assistant';
  readonly content: unknown;
}

const BLOCKS = [
  'text',
  'image',
  'document',
  'tool_use',
  'tool_result',
  'thinking',
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
] as const;
const SOURCES = ['base64', 'url', 'text', 'file'];
const TOOL_ID = /^[a-zA-Z0-9_-]+$/;

/** Returns content, such as that of a turn, as blocks: a string as one text block, missing content as none. */
export function toBlocks(content: unknown): readonly MessageBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content : [];
}

/** @throws HttpError */
export function assertTurns(messages: unknown): readonly MessageTurn[] {
  const turns = messages as readonly MessageTurn[];
  if (turns.length === 0) throw invalidRequestError('messages: at least one message is required');
  turns.forEach(assertTurn);
  assertCallsMatchResults(turns);
  return turns;
}

function assertTurn(turn: MessageTurn, at: number, { length }: readonly MessageTurn[]): void {
  const name = `messages.${at}`;
  if (typeof turn !== 'object' || turn === null) throw invalidRequestError(`${name}: Input should be an object`);
  const { role, content } = turn;
  if ((role as string) === 'system') {
    throw invalidRequestError(
      'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.',
    );
  }
  if (role !== 'user' && role !== 'assistant') {
    throw invalidRequestError(`messages: Unexpected role "${role}". Allowed roles are "user" or "assistant".`);
  }
  if (typeof content !== 'string' && !Array.isArray(content)) {
    throw invalidRequestError(`${name}.content: Input should be a valid list`);
  }
  if (content.length === 0 && !(role === 'assistant' && at === length - 1)) {
    throw invalidRequestError(
      `${name}: all messages must have non-empty content except for the optional final assistant message`,
    );
  }
  toBlocks(content).forEach((block, index) => {
    assertBlock(block, `${name}.content.${index}`);
  });
}

function assertBlock(block: MessageBlock | null, name: string): void {
  if (typeof block !== 'object' || block === null) throw invalidRequestError(`${name}: Input should be an object`);
  const { type, text, id, tool_use_id, signature, source } = block;
  if (!BLOCKS.some((tag) => tag === type)) {
    const tags = BLOCKS.map((tag) => `'${tag}'`).join(', ');
    throw invalidRequestError(
      `${name}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`,
    );
  }
  if (type === 'text' && typeof text !== 'string')
    throw invalidRequestError(`${name}.text.text: Input should be a valid string`);
  if (type === 'text' && text === '') throw invalidRequestError('messages: text content blocks must be non-empty');
  if (type === 'thinking' && !signature) throw invalidRequestError(`${name}.thinking.signature: Field required`);
  if ((type === 'image' || type === 'document') && !SOURCES.includes(String(source?.type))) {
    throw invalidRequestError(`${name}.${type}.source: Field required`);
  }
  if (type === 'tool_use' && !TOOL_ID.test(String(id))) {
    throw invalidRequestError(`${name}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  }
  if (type === 'web_search_tool_result' && !hasEncryptedPages(block))
    throw invalidRequestError(`${name}.web_search_tool_result.content: Invalid encrypted_content`);
  if (type === 'tool_result' && typeof tool_use_id !== 'string') {
    throw invalidRequestError(`${name}.tool_result.tool_use_id: Field required`);
  }
}

/** Whether a search result is an error, or its pages are as the response had them. */
function hasEncryptedPages({ content }: MessageBlock): boolean {
  return !Array.isArray(content) || content.every((page) => page?.encrypted_content === ENCRYPTED);
}

/**
 * Checks that each call has its result in the next turn, and each result its call in the previous turn. Consecutive
 * turns of the same role count as one turn.
 */
function assertCallsMatchResults(turns: readonly MessageTurn[]): void {
  const joined: { readonly role: string; readonly blocks: MessageBlock[] }[] = [];
  for (const { role, content } of turns) {
    const last = joined.at(-1);
    if (last?.role === role) last.blocks.push(...toBlocks(content));
    else joined.push({ role, blocks: [...toBlocks(content)] });
  }
  joined.forEach(({ role, blocks }, at) => {
    if (role === 'assistant') assertCallsHaveResults(blocks, joined[at + 1]?.blocks ?? [], at);
    else assertResultsHaveCalls(blocks, joined[at - 1]?.blocks ?? [], at);
  });
}

function assertCallsHaveResults(blocks: readonly MessageBlock[], next: readonly MessageBlock[], at: number): void {
  const results = new Set(next.map(({ tool_use_id }) => tool_use_id));
  const open = blocks.filter(({ type, id }) => type === 'tool_use' && !results.has(id)).map(({ id }) => id);
  if (open.length === 0) return;
  throw invalidRequestError(
    `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  );
}

function assertResultsHaveCalls(blocks: readonly MessageBlock[], before: readonly MessageBlock[], at: number): void {
  const calls = new Set(before.filter(({ type }) => type === 'tool_use').map(({ id }) => id));
  const stray = blocks.find(({ type, tool_use_id }) => type === 'tool_result' && !calls.has(tool_use_id));
  if (!stray) return;
  throw invalidRequestError(
    `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray.tool_use_id}. ` +
      'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
  );
}
