/**
 * Turns of the assistant with web searches of the provider, which a client of Anthropic's Messages API sends back so that
 * the provider continues them: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause-turn
 */
import { isJsonObject, type JsonObject } from '#kernel';

/** Ids of searches. Their results must name them. */
const SEARCH_ID = /^[\w-]{1,128}$/;

/**
 * Returns the blocks of a turn as the provider needs them, in their order. A text has no citations, which refer to
 * encrypted passages that clients do not get.
 * @param blocks of the client
 * @returns undefined if the turn has no search of a provider, or a block that the provider would not accept; the results
 *   of the gateway's own searches, for example, have no encrypted content
 */
export function parseSearchBlocks(blocks: unknown): readonly JsonObject[] | undefined {
  if (!Array.isArray(blocks) || !blocks.some((block) => block?.type === 'server_tool_use')) return undefined;
  const searches = new Set<unknown>();
  const parsed = blocks.map((block) => (isJsonObject(block) ? parseBlock(block, searches) : undefined));
  return parsed.every((block) => block !== undefined) ? parsed.filter(({ text }) => text !== '') : undefined;
}

/** @param searches ids of the searches so far */
function parseBlock(block: JsonObject, searches: Set<unknown>): JsonObject | undefined {
  const { type, id, name, input, text, thinking, signature, data, tool_use_id, content } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? { type, text } : undefined;
    case 'thinking':
      return isText(signature) && typeof thinking === 'string' ? { type, thinking, signature } : undefined;
    case 'redacted_thinking':
      return isText(data) ? { type, data } : undefined;
    case 'tool_use':
      return isText(id) && isText(name) && isJsonObject(input) ? { type, id, name, input } : undefined;
    case 'server_tool_use':
      if (name !== 'web_search' || !isText(id) || !SEARCH_ID.test(id) || !isJsonObject(input)) return undefined;
      searches.add(id);
      return { type, id, name, input };
    case 'web_search_tool_result':
      return searches.has(tool_use_id) && isSearchResult(content) ? { type, tool_use_id, content } : undefined;
    default:
      return undefined;
  }
}

/** Whether the content is a list of encrypted pages, or an error. */
function isSearchResult(content: unknown): boolean {
  if (Array.isArray(content)) return content.every((page) => isJsonObject(page) && isText(page.encrypted_content));
  return isJsonObject(content) && isText(content.error_code);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
