/** OpenAI's messages as Anthropic's turns. */
import { FORMAT } from './blocks.ts';
import { cached, type JsonObject, unsupported } from './body.ts';

export interface ConversationTurn {
  readonly role: 'user' | 'assistant';
  readonly content: readonly JsonObject[];
}

/**
 * System messages stand apart, wherever they stood. Messages of one side that follow each other are one turn: so all
 * results of the tools that were called at once come back together, as Anthropic demands.
 */
export function conversation(sent: readonly JsonObject[]): {
  readonly system: JsonObject[];
  readonly messages: ConversationTurn[];
} {
  const system: JsonObject[] = [];
  const turns: { role: ConversationTurn['role']; content: JsonObject[] }[] = [];
  for (const message of sent) {
    const { role } = message;
    if (role === 'system' || role === 'developer') {
      system.push(...blocksOf(message.content));
      continue;
    }
    const side = role === 'assistant' ? 'assistant' : 'user';
    const blocks =
      role === 'assistant' ? spoken(message) : role === 'tool' ? [result(message)] : blocksOf(message.content);
    const last = turns.at(-1);
    if (last?.role === side) last.content.push(...blocks);
    else if (blocks.length > 0) turns.push({ role: side, content: blocks });
  }
  return { system, messages: turns };
}

/** What the assistant said: its thoughts, if the caller kept them, its words, and the calls it made. */
function spoken({ content, reasoning_details, tool_calls }: JsonObject): JsonObject[] {
  return [...thoughts(reasoning_details), ...blocksOf(content), ...asList(tool_calls).map(toolUse)];
}

function thoughts(details: unknown): JsonObject[] {
  return asList(details).flatMap(({ type, text, signature, data, format }): JsonObject[] => {
    // Anthropic refuses what another vendor has signed.
    if (typeof format === 'string' && format !== FORMAT) return [];
    if (type === 'reasoning.text' && signature) return [{ type: 'thinking', thinking: text ?? '', signature }];
    return type === 'reasoning.encrypted' && data ? [{ type: 'redacted_thinking', data }] : [];
  });
}

function toolUse({ id, function: called }: JsonObject): JsonObject {
  const { name, arguments: text } = (called ?? {}) as JsonObject;
  return { type: 'tool_use', id: toolId(id), name, input: inputFrom(text) };
}

function inputFrom(text: unknown): unknown {
  try {
    return JSON.parse(String(text ?? '').trim() || '{}');
  } catch {
    throw unsupported('The arguments of a tool call are not JSON');
  }
}

function result({ tool_call_id, content, is_error, cache_control }: JsonObject): JsonObject {
  const given = typeof content === 'string' ? content : blocksOf(content);
  const failed = is_error === true ? { is_error } : {};
  return {
    type: 'tool_result',
    tool_use_id: toolId(tool_call_id),
    content: given,
    ...failed,
    ...cached(cache_control),
  };
}

/** Ids that other vendors made may have characters that Anthropic does not allow. */
function toolId(id: unknown): string {
  return String(id).replace(/[^a-zA-Z0-9_-]/g, '_');
}

function blocksOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return text(content);
  return asList(content).flatMap(block);
}

function block(part: JsonObject): JsonObject[] {
  switch (part.type) {
    case 'text':
      return text(part.text).map((each) => ({ ...each, ...cached(part.cache_control) }));
    case 'refusal':
      return text(part.refusal);
    case 'image_url':
      return [{ type: 'image', source: image(part.image_url), ...cached(part.cache_control) }];
    case 'file':
      return [{ type: 'document', ...file(part.file), ...cached(part.cache_control) }];
    default:
      throw unsupported(`This model takes text, images and files, not a part of type "${part.type}"`);
  }
}

/** Anthropic refuses a text without characters. */
function text(given: unknown): JsonObject[] {
  return typeof given === 'string' && given !== '' ? [{ type: 'text', text: given }] : [];
}

function image(given: unknown): JsonObject {
  const { url } = (typeof given === 'string' ? { url: given } : (given ?? {})) as JsonObject;
  return source(url) ?? refuse('An image must be a data: URL in base64, or an http(s) URL');
}

function file(given: unknown): JsonObject {
  const { file_data, filename } = (given ?? {}) as JsonObject;
  const from =
    plainText(source(file_data)) ??
    refuse('A file must be given as file_data: a data: URL in base64, or an http(s) URL');
  return { source: from, ...(typeof filename === 'string' ? { title: filename } : {}) };
}

function source(url: unknown): JsonObject | undefined {
  if (typeof url !== 'string') return undefined;
  if (/^https?:\/\//i.test(url)) return { type: 'url', url };
  const comma = url.indexOf(',');
  const head = /^data:([^;,]+)(?:;[^;,]+)*;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  return head ? { type: 'base64', media_type: head[1]?.toLowerCase(), data: url.slice(comma + 1) } : undefined;
}

/** A document of plain text is given as it reads; in base64 Anthropic takes PDF only. */
function plainText(from: JsonObject | undefined): JsonObject | undefined {
  if (from?.media_type !== 'text/plain') return from;
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(String(from.data), 'base64').toString('utf8') };
}

function refuse(message: string): never {
  throw unsupported(message);
}

function asList(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value : [];
}
