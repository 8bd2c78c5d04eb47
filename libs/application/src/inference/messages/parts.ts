/** Converts Anthropic's content blocks to content parts of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import { assertSupported, BLOCK_RULES } from './unsupported.ts';

/**
 * Converts a content block. An empty text becomes no part, because some providers reject it.
 * @throws InvalidRequestError (400) naming the content block
 */
export function toChatParts(block: JsonObject, param: string): readonly JsonObject[] {
  const { cache_control } = block;
  const parts = convertBlock(block, param);
  const last = parts.at(-1);
  return last && isJsonObject(cache_control) ? [...parts.slice(0, -1), { ...last, cache_control }] : parts;
}

function convertBlock(block: JsonObject, param: string): readonly JsonObject[] {
  assertSupported(block, BLOCK_RULES, `${param}.`);
  const { type, text, source, title, context, tool_name } = block;
  switch (type) {
    case 'text':
      if (typeof text !== 'string') throw invalidRequest(`${param}.text must be a string`, `${param}.text`);
      return toTextParts(text);
    case 'image':
      return [{ type: 'image_url', image_url: { url: parseSourceUrl(source, `${param}.source`) } }];
    case 'document':
      return [...toTextParts(formatHeading([title, context])), ...toDocumentParts(source, title, `${param}.source`)];
    case 'search_result':
      return [...toTextParts(formatHeading([title, source])), ...parseNestedBlocks(block.content, `${param}.content`)];
    case 'tool_reference':
      return toTextParts(String(tool_name));
    default:
      throw invalidRequest(`Content of the type "${String(type).slice(0, 64)}" is not supported`, `${param}.type`);
  }
}

/** Joins the lines that precede a document or a search result. */
function formatHeading(lines: readonly unknown[]): string {
  const nonEmptyLines = lines.filter((line) => typeof line === 'string' && line !== '');
  return nonEmptyLines.length > 0 ? `${nonEmptyLines.join('\n')}\n` : '';
}

/** Converts the source of a document: text becomes a text part, content blocks become parts, anything else a file. */
function toDocumentParts(source: unknown, title: unknown, param: string): readonly JsonObject[] {
  const { type, data, content } = isJsonObject(source) ? source : {};
  if (type === 'text' && typeof data === 'string') return toTextParts(data);
  if (type === 'content')
    return typeof content === 'string' ? toTextParts(content) : parseNestedBlocks(content, `${param}.content`);
  const filename = typeof title === 'string' ? { filename: title } : {};
  return [{ type: 'file', file: { ...filename, file_data: parseSourceUrl(source, param) } }];
}

function parseNestedBlocks(content: unknown, param: string): readonly JsonObject[] {
  if (!Array.isArray(content)) throw invalidRequest(`${param} must be an array of text and image blocks`, param);
  return content.flatMap((block, at) => {
    const path = `${param}[${at}]`;
    if (isJsonObject(block) && (block.type === 'text' || block.type === 'image')) return convertBlock(block, path);
    throw invalidRequest(`${path} must be a text or image block`, path);
  });
}

/** Returns the URL of a source; base64 data becomes a data URL. */
function parseSourceUrl(source: unknown, param: string): string {
  const { type, media_type, data, url } = isJsonObject(source) ? source : {};
  if (type === 'url' && typeof url === 'string') return url;
  if (type === 'base64' && typeof media_type === 'string' && typeof data === 'string') {
    return `data:${media_type};base64,${data}`;
  }
  throw invalidRequest(`${param} must be base64 with a media_type, or a URL; files by id are not supported`, param);
}

function toTextParts(text: string): readonly JsonObject[] {
  return text === '' ? [] : [{ type: 'text', text }];
}
