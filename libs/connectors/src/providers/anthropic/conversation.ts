/** Translates OpenAI's messages to Anthropic's turns. */
import { parseSearchBlocks, WorkParts } from '#application';
import { type JsonObject } from '#kernel';
import { parseDataUrl } from '../chat/data-url.ts';
import { parseToolArguments } from '../chat/tool-arguments.ts';
import { REASONING_FORMAT } from './blocks.ts';
import { toCacheControl, unsupportedError } from './body.ts';

/**
 * Limit of a plain text document in base64, whose decoding cannot be divided: 7 ms. The text that fills the largest
 * context, a million tokens, has about two thirds of these characters.
 */
const MAX_TEXT_DOCUMENT_CHARACTERS = 8 * 1024 * 1024;

export interface ConversationTurn {
  readonly role: 'user' | 'assistant';
  readonly content: readonly JsonObject[];
}

/**
 * Separates the system and developer messages. Of the others, merges consecutive user and tool messages into one turn,
 * and consecutive assistant messages too. Anthropic requires that the results of parallel tool calls are in one turn.
 * @param canSearch whether the request has Anthropic's search: then turns with its searches are sent back as they were
 */
export async function toConversation(
  sent: readonly JsonObject[],
  canSearch = false,
): Promise<{
  readonly system: JsonObject[];
  readonly messages: ConversationTurn[];
}> {
  const parts = new WorkParts();
  const system: JsonObject[] = [];
  const turns: { role: ConversationTurn['role']; content: JsonObject[] }[] = [];
  for (const message of sent) {
    await parts.rest();
    const { role } = message;
    if (role === 'system' || role === 'developer') {
      system.push(...(await toBlocks(message.content, parts)));
      continue;
    }
    const side = role === 'assistant' ? 'assistant' : 'user';
    const blocks =
      role === 'assistant'
        ? ((canSearch ? toSearchedBlocks(message) : undefined) ?? (await toAssistantBlocks(message, parts)))
        : role === 'tool'
          ? [await toToolResult(message, parts)]
          : await toBlocks(message.content, parts);
    const last = turns.at(-1);
    if (last?.role === side) last.content.push(...blocks);
    else if (blocks.length > 0) turns.push({ role: side, content: blocks });
  }
  return { system, messages: turns };
}

/** Returns the blocks in Anthropic's order: thinking that the client has stored, then text, then tool calls. */
async function toAssistantBlocks(
  { content, reasoning_details, tool_calls }: JsonObject,
  parts: WorkParts,
): Promise<JsonObject[]> {
  const blocks = [...toThinkingBlocks(reasoning_details), ...(await toBlocks(content, parts))];
  for (const call of toArray(tool_calls)) {
    blocks.push(toToolUse(call));
    await parts.rest();
  }
  return blocks;
}

/** Returns the blocks of a turn with searches of Anthropic, in their order; undefined for another turn. */
function toSearchedBlocks({ content_blocks }: JsonObject): JsonObject[] | undefined {
  return parseSearchBlocks(content_blocks)?.map((block) =>
    block.type === 'tool_use' ? { ...block, id: toToolId(block.id) } : block,
  );
}

function toThinkingBlocks(details: unknown): JsonObject[] {
  return toArray(details).flatMap(({ type, text, signature, data, format }): JsonObject[] => {
    // Anthropic rejects reasoning with the signature of another provider.
    if (typeof format === 'string' && format !== REASONING_FORMAT) return [];
    if (type === 'reasoning.text' && signature) return [{ type: 'thinking', thinking: text ?? '', signature }];
    return type === 'reasoning.encrypted' && data ? [{ type: 'redacted_thinking', data }] : [];
  });
}

function toToolUse({ id, function: called }: JsonObject): JsonObject {
  const { name, arguments: text } = (called ?? {}) as JsonObject;
  return { type: 'tool_use', id: toToolId(id), name, input: parseToolArguments(text) };
}

async function toToolResult(
  { tool_call_id, content, is_error, cache_control }: JsonObject,
  parts: WorkParts,
): Promise<JsonObject> {
  const resultContent = typeof content === 'string' ? content : await toBlocks(content, parts);
  const failed = is_error === true ? { is_error } : {};
  return {
    type: 'tool_result',
    tool_use_id: toToolId(tool_call_id),
    content: resultContent,
    ...failed,
    ...toCacheControl(cache_control),
  };
}

/** Ids of other providers may have characters that Anthropic does not allow. */
function toToolId(id: unknown): string {
  return String(id).replace(/[^a-zA-Z0-9_-]/g, '_');
}

async function toBlocks(content: unknown, parts: WorkParts): Promise<JsonObject[]> {
  if (typeof content === 'string') return toTextBlocks(content);
  const blocks: JsonObject[] = [];
  for (const part of toArray(content)) {
    blocks.push(...partToBlocks(part));
    await parts.rest();
  }
  return blocks;
}

function partToBlocks(part: JsonObject): JsonObject[] {
  switch (part.type) {
    case 'text':
      return toTextBlocks(part.text).map((textBlock) => ({ ...textBlock, ...toCacheControl(part.cache_control) }));
    case 'refusal':
      return toTextBlocks(part.refusal);
    case 'image_url':
      return [{ type: 'image', source: toImageSource(part.image_url), ...toCacheControl(part.cache_control) }];
    case 'file':
      return [{ type: 'document', ...toDocument(part.file), ...toCacheControl(part.cache_control) }];
    default:
      throw unsupportedError(`Content parts of the type "${part.type}" are not supported by this model`);
  }
}

/** Leaves out empty text, which Anthropic rejects. */
function toTextBlocks(value: unknown): JsonObject[] {
  return typeof value === 'string' && value !== '' ? [{ type: 'text', text: value }] : [];
}

function toImageSource(value: unknown): JsonObject {
  const { url } = (typeof value === 'string' ? { url: value } : (value ?? {})) as JsonObject;
  return parseSource(url) ?? throwUnsupported('image_url must be a base64 data: URL or an http or https URL');
}

function toDocument(value: unknown): JsonObject {
  const { file_data, filename } = (value ?? {}) as JsonObject;
  const from =
    decodePlainText(parseSource(file_data)) ??
    throwUnsupported('file_data must be a base64 data: URL or an http or https URL');
  return { source: from, ...(typeof filename === 'string' ? { title: filename } : {}) };
}

function parseSource(url: unknown): JsonObject | undefined {
  if (typeof url !== 'string') return undefined;
  if (/^https?:\/\//i.test(url)) return { type: 'url', url };
  const parsed = parseDataUrl(url);
  return parsed && { type: 'base64', media_type: parsed.mediaType, data: parsed.data };
}

/** Decodes a plain text document, because Anthropic accepts only PDF documents in base64. */
function decodePlainText(from: JsonObject | undefined): JsonObject | undefined {
  if (from?.media_type !== 'text/plain') return from;
  const base64 = String(from.data);
  if (base64.length > MAX_TEXT_DOCUMENT_CHARACTERS)
    throw unsupportedError(
      `A plain text document must have at most ${MAX_TEXT_DOCUMENT_CHARACTERS} characters in base64`,
    );
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString('utf8') };
}

function throwUnsupported(message: string): never {
  throw unsupportedError(message);
}

function toArray(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value : [];
}
