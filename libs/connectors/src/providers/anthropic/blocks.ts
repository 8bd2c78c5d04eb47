/** What an answer consists of, in Anthropic's words and in OpenAI's. */

/** A content block of an answer. Of Anthropic's own tools only the web search is among them. */
export type AnthropicContentBlock =
  | { readonly type: 'text'; readonly text: string; readonly citations?: readonly Citation[] | null }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature?: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'server_tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | SearchResultBlock;

/** What a search has found: a list of pages, or an error, which is not invoiced. */
export interface SearchResultBlock {
  readonly type: 'web_search_tool_result';
  readonly tool_use_id: string;
  readonly content: unknown;
}

/** A page that a text is taken from; of other kinds only the type is known. */
export interface Citation {
  readonly type: string;
  readonly url?: string;
  readonly title?: string | null;
  readonly cited_text?: string;
}

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/** OpenAI's finish reason; one that is not known ends an answer as any other. */
export function toFinishReason(stopReason: string): string {
  return FINISH_REASONS.get(stopReason) ?? 'stop';
}

/** The name that OpenRouter's clients know the format by, and send it back with. */
export const REASONING_FORMAT = 'anthropic-claude-v1';

/** Thinking with its signature, which the caller must send back for Anthropic to go on with a tool's result. */
export function toReasoningDetail(
  index: number,
  block: Extract<AnthropicContentBlock, { type: 'thinking' | 'redacted_thinking' }>,
) {
  return block.type === 'thinking'
    ? {
        type: 'reasoning.text',
        text: block.thinking,
        signature: block.signature ?? null,
        format: REASONING_FORMAT,
        index,
      }
    : { type: 'reasoning.encrypted', data: block.data, format: REASONING_FORMAT, index };
}

/** Sources as OpenAI's clients know them: where in the answer they stand. `content` is OpenRouter's addition. */
export function toAnnotations(citations: readonly Citation[], start: number, end: number): readonly object[] {
  return citations
    .filter(({ type, url }) => type === 'web_search_result_location' && typeof url === 'string')
    .map(({ url, title, cited_text }) => ({
      type: 'url_citation',
      url_citation: { url, title: title ?? url, content: cited_text ?? '', start_index: start, end_index: end },
    }));
}
