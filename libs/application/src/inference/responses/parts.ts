/** Converts messages and tool outputs of the Responses API to messages of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

/** A message of a chat, in OpenAI's format. */
export type ChatMessage = JsonObject & { readonly role: string };

/** @throws InvalidRequestError (400) naming the invalid field */
export function toChatMessage({ role, content }: JsonObject, param: string): ChatMessage {
  if (role === 'assistant') return { role, ...toAssistantContent(content, param) };
  // Every chat model supports "system", but only some support "developer".
  if (role === 'system' || role === 'developer') return { role: 'system', content: parseText(content, param) };
  if (role !== 'user') {
    throw invalidRequest(`${param}.role must be "user", "assistant", "system" or "developer"`, `${param}.role`);
  }
  if (typeof content === 'string') return { role, content };
  return { role, content: parseParts(content, param).map((part, at) => toChatPart(part, `${param}.content[${at}]`)) };
}

function toAssistantContent(content: unknown, param: string): JsonObject {
  if (typeof content === 'string') return { content };
  const parts = parseParts(content, param);
  const refusalTexts = parts.filter(({ type }) => type === 'refusal').map((part) => part.refusal);
  const text = parseText(
    parts.filter(({ type }) => type !== 'refusal'),
    param,
  );
  return refusalTexts.length === 0 ? { content: text } : { content: text || null, refusal: refusalTexts.join('') };
}

/** Start of content that a provider has encrypted. */
const ENCRYPTED_PREFIX = 'gAAAA';

/**
 * Converts plain text that is marked as encrypted to a text part. Agents set the mark because their own provider would
 * encrypt the text; no provider here does. Encrypted content is returned unchanged, and rejected later.
 */
export function toReadablePart(part: JsonObject): JsonObject {
  const { type, encrypted_content: text } = part;
  const isPlain = type === 'encrypted_content' && typeof text === 'string' && !text.startsWith(ENCRYPTED_PREFIX);
  return isPlain ? { type: 'input_text', text } : part;
}

/** Converts a message of another agent to a user message, because chats have no role for it. */
export function toAgentMessage({ author, recipient, content }: JsonObject, param: string): ChatMessage {
  for (const [field, value] of Object.entries({ author, recipient })) {
    if (typeof value !== 'string') throw invalidRequest(`${param}.${field} must be a string`, `${param}.${field}`);
  }
  return { role: 'user', content: `Message from ${author} to ${recipient}:\n${parseText(content, param)}` };
}

/** Converts the output of a tool: to a string if it contains only text, else to content parts. */
export function toToolOutput(output: unknown, param: string): string | readonly JsonObject[] {
  if (typeof output === 'string') return output;
  const parts = parseParts(output, param, 'output').map((part, at) => toChatPart(part, `${param}.output[${at}]`));
  return parts.every(({ type }) => type === 'text') ? parts.map(({ text }) => text).join('') : parts;
}

/** Parses content that must be text, as in messages of every role but the user. */
function parseText(content: unknown, param: string): string {
  if (typeof content === 'string') return content;
  return parseParts(content, param)
    .map(({ type, text }, at) => {
      if (isTextPart(type) && typeof text === 'string') return text;
      throw invalidRequest(`${param}.content[${at}] must be a text part`, `${param}.content[${at}]`);
    })
    .join('');
}

function parseParts(content: unknown, param: string, field = 'content'): readonly JsonObject[] {
  if (Array.isArray(content) && content.every(isJsonObject)) return content.map(toReadablePart);
  throw invalidRequest(`${param}.${field} must be a string or an array of objects`, `${param}.${field}`);
}

export function isTextPart(type: unknown): boolean {
  return type === 'input_text' || type === 'output_text' || type === 'text';
}

function toChatPart(part: JsonObject, param: string): JsonObject {
  const { type } = part;
  if (isTextPart(type)) {
    if (typeof part.text !== 'string') throw invalidRequest(`${param}.text must be a string`, `${param}.text`);
    return { type: 'text', text: part.text };
  }
  if (type === 'input_image' || type === 'image_url') return toImagePart(part, param);
  if (type === 'input_file' || type === 'file') return toFilePart(part, param);
  if (type === 'input_audio' && isJsonObject(part.input_audio)) return { type, input_audio: part.input_audio };
  throw invalidRequest(`Content of the type "${String(type)}" is not supported`, `${param}.type`);
}

export function getPartUrl({ image_url }: JsonObject): unknown {
  return isJsonObject(image_url) ? image_url.url : image_url;
}

function toImagePart({ image_url, file_id, detail }: JsonObject, param: string): JsonObject {
  const url = getPartUrl({ image_url });
  if (typeof url !== 'string') {
    const field = (file_id ?? null) === null ? 'image_url' : 'file_id';
    const message = `${param}.image_url must be a URL or a data URL; files by id are not supported`;
    throw invalidRequest(message, `${param}.${field}`);
  }
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } };
}

/** A file by id may belong to another customer. One by URL is fetched after money is held. */
function toFilePart(part: JsonObject, param: string): JsonObject {
  const { file_data, file_url, filename } = isJsonObject(part.file) ? part.file : part;
  const name = typeof filename === 'string' ? { filename } : {};
  if (typeof file_data === 'string') return { type: 'file', file: { ...name, file_data } };
  if (typeof file_url === 'string') return { type: 'file', file: { ...name, file_url } };
  const field = (part.file_id ?? null) === null ? 'file_data' : 'file_id';
  const message = `${param}.file_data must be a data URL, or file_url an HTTP(S) URL; files by id are not supported`;
  throw invalidRequest(message, `${param}.${field}`);
}
