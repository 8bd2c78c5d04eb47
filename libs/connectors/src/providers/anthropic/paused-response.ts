/**
 * Turns that Anthropic pauses while it searches the web. A request that ends with the content so far continues the turn:
 * https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause-turn
 */
import type { PausedResponse } from '#application';
import type { AnthropicContentBlock } from './blocks.ts';

/**
 * Limit of the content of a turn, as JSON. It bounds what is retained and sent again. The results of three searches have
 * about a tenth of these characters. A longer turn is not continued.
 */
export const MAX_PAUSED_CHARACTERS = 4 * 1024 * 1024;

/** The blocks with which a turn can be continued. A call of the caller's tool would require its result first. */
const CONTINUABLE_TYPES: ReadonlySet<string> = new Set([
  'text',
  'thinking',
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
]);

/**
 * Creates the turn from its content, of all calls for it. Empty texts are left out, because Anthropic rejects them.
 * @returns undefined if the turn cannot be continued
 */
export function createPausedResponse(content: readonly AnthropicContentBlock[]): PausedResponse | undefined {
  const sent = content.filter((block) => block.type !== 'text' || block.text !== '');
  if (sent.length === 0 || !sent.every(({ type }) => CONTINUABLE_TYPES.has(type))) return undefined;
  if (JSON.stringify(sent).length > MAX_PAUSED_CHARACTERS) return undefined;
  const results = new Set(
    sent.map((block) => (block.type === 'web_search_tool_result' ? block.tool_use_id : undefined)),
  );
  const searches = sent.filter(({ type }) => type === 'web_search_tool_result').length;
  const isSearching = sent.some((block) => block.type === 'server_tool_use' && !results.has(block.id));
  return { content: sent, searches, isSearching };
}

/** Returns the content of a turn that this connector has paused; empty for a new turn. */
export function getPausedContent(turn: PausedResponse | undefined): readonly AnthropicContentBlock[] {
  return (turn?.content ?? []) as readonly AnthropicContentBlock[];
}
