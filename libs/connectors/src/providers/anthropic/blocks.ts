/** The content blocks of Anthropic's responses and their equivalents in OpenAI's API. */
import { parseStopDetails, type StopDetails } from '#application';

/** A content block of a response. Of the tools that Anthropic runs, only the web search is used. */
export type AnthropicContentBlock =
  | { readonly type: 'text'; readonly text: string; readonly citations?: readonly Citation[] | null }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature?: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'server_tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | SearchResultBlock;

/** The result of a search: `content` is a list of pages, or an error. Failed searches are not invoiced. */
export interface SearchResultBlock {
  readonly type: 'web_search_tool_result';
  readonly tool_use_id: string;
  readonly content: unknown;
}

type ReasoningBlock = Extract<AnthropicContentBlock, { readonly type: 'thinking' | 'redacted_thinking' }>;

export function isReasoning(block: { readonly type?: unknown }): block is ReasoningBlock {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

/** The source of a text. Only citations of search results have a URL and a title. */
export interface Citation {
  readonly type: string;
  readonly url?: string;
  readonly title?: string | null;
  readonly cited_text?: string;
}

/** The stop reason of a turn that a further call can continue. */
export const PAUSE_TURN = 'pause_turn';

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
  [PAUSE_TURN, 'length'],
]);

/** How a message ends, as Anthropic reports it at the end of a message or a stream. */
export interface MessageStop {
  readonly stop_reason: string;
  /** The caller's stop sequence that ended the completion. */
  readonly stop_sequence?: string | null;
  /** Why the model refused to respond. */
  readonly stop_details?: unknown;
}

/**
 * Returns the end of a choice: OpenAI's finish reason, which is `stop` for an unknown stop reason, and the fields that
 * OpenAI's API does not have.
 */
export function toChoiceEnd({ stop_reason, stop_sequence, stop_details }: MessageStop): ChoiceEnd {
  const details = stop_reason === 'refusal' ? parseStopDetails(stop_details) : undefined;
  return {
    finish_reason: FINISH_REASONS.get(stop_reason) ?? 'stop',
    ...(stop_reason === PAUSE_TURN ? { native_finish_reason: PAUSE_TURN } : {}),
    ...(stop_sequence ? { stop_sequence } : {}),
    ...(details ? { stop_details: details } : {}),
  };
}

export interface ChoiceEnd {
  readonly finish_reason: string;
  /** OpenRouter's field for a stop reason that has no equivalent in OpenAI's API. */
  readonly native_finish_reason?: string;
  readonly stop_sequence?: string;
  readonly stop_details?: StopDetails;
}

/** OpenRouter's name of the format, which its clients send back together with the reasoning. */
export const REASONING_FORMAT = 'anthropic-claude-v1';

/**
 * Returns thinking with its signature, or redacted thinking, in OpenRouter's format. With the results of tool calls
 * Anthropic requires the thinking that came before the calls.
 */
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

/**
 * Returns OpenAI's annotations for the search results that a range of the text cites. The field `content` of an
 * annotation is an addition of OpenRouter.
 */
export function toAnnotations(citations: readonly Citation[], start: number, end: number): readonly object[] {
  return citations
    .filter(({ type, url }) => type === 'web_search_result_location' && typeof url === 'string')
    .map(({ url, title, cited_text }) => ({
      type: 'url_citation',
      url_citation: { url, title: title ?? url, content: cited_text ?? '', start_index: start, end_index: end },
    }));
}
