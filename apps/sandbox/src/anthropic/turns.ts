/** The conversation of a Messages request, and what Anthropic demands of it. */
import { invalid } from './errors.ts';

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

/** A text stands for one block of it. */
export function blocksOf(content: unknown): readonly MessageBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content : [];
}

/** @throws Refusal */
export function assertTurns(messages: unknown): readonly MessageTurn[] {
  const turns = messages as readonly MessageTurn[];
  if (turns.length === 0) throw invalid('messages: at least one message is required');
  turns.forEach(assertTurn);
  assertCallsAreAnswered(turns);
  return turns;
}

function assertTurn(turn: MessageTurn, at: number, { length }: readonly MessageTurn[]): void {
  const name = `messages.${at}`;
  if (typeof turn !== 'object' || turn === null) throw invalid(`${name}: Input should be an object`);
  const { role, content } = turn;
  if ((role as string) === 'system') {
    throw invalid('messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.');
  }
  if (role !== 'user' && role !== 'assistant') {
    throw invalid(`messages: Unexpected role "${role}". Allowed roles are "user" or "assistant".`);
  }
  if (typeof content !== 'string' && !Array.isArray(content)) {
    throw invalid(`${name}.content: Input should be a valid list`);
  }
  if (content.length === 0 && !(role === 'assistant' && at === length - 1)) {
    throw invalid(`${name}: all messages must have non-empty content except for the optional final assistant message`);
  }
  blocksOf(content).forEach((block, index) => {
    assertBlock(block, `${name}.content.${index}`);
  });
}

function assertBlock(block: MessageBlock | null, name: string): void {
  if (typeof block !== 'object' || block === null) throw invalid(`${name}: Input should be an object`);
  const { type, text, id, tool_use_id, signature, source } = block;
  if (!BLOCKS.some((each) => each === type)) {
    const tags = BLOCKS.map((each) => `'${each}'`).join(', ');
    throw invalid(`${name}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`);
  }
  if (type === 'text' && typeof text !== 'string') throw invalid(`${name}.text.text: Input should be a valid string`);
  if (type === 'text' && text === '') throw invalid('messages: text content blocks must be non-empty');
  if (type === 'thinking' && !signature) throw invalid(`${name}.thinking.signature: Field required`);
  if ((type === 'image' || type === 'document') && !SOURCES.includes(String(source?.type))) {
    throw invalid(`${name}.${type}.source: Field required`);
  }
  if (type === 'tool_use' && !TOOL_ID.test(String(id))) {
    throw invalid(`${name}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  }
  if (type === 'tool_result' && typeof tool_use_id !== 'string') {
    throw invalid(`${name}.tool_result.tool_use_id: Field required`);
  }
}

/** Turns of one side that follow each other are one: each call has its result in the next one, and each result its call. */
function assertCallsAreAnswered(turns: readonly MessageTurn[]): void {
  const joined: { readonly role: string; readonly blocks: MessageBlock[] }[] = [];
  for (const { role, content } of turns) {
    const last = joined.at(-1);
    if (last?.role === role) last.blocks.push(...blocksOf(content));
    else joined.push({ role, blocks: [...blocksOf(content)] });
  }
  joined.forEach(({ role, blocks }, at) => {
    if (role === 'assistant') assertAnswered(blocks, joined[at + 1]?.blocks ?? [], at);
    else assertAsked(blocks, joined[at - 1]?.blocks ?? [], at);
  });
}

function assertAnswered(blocks: readonly MessageBlock[], next: readonly MessageBlock[], at: number): void {
  const results = new Set(next.map(({ tool_use_id }) => tool_use_id));
  const open = blocks.filter(({ type, id }) => type === 'tool_use' && !results.has(id)).map(({ id }) => id);
  if (open.length === 0) return;
  throw invalid(
    `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  );
}

function assertAsked(blocks: readonly MessageBlock[], before: readonly MessageBlock[], at: number): void {
  const calls = new Set(before.filter(({ type }) => type === 'tool_use').map(({ id }) => id));
  const stray = blocks.find(({ type, tool_use_id }) => type === 'tool_result' && !calls.has(tool_use_id));
  if (!stray) return;
  throw invalid(
    `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray.tool_use_id}. ` +
      'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
  );
}
