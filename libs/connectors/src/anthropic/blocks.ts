/** What an answer consists of, in Anthropic's words and in OpenAI's. */

/** A content block of an answer. Kinds that only Anthropic's own tools produce are not among them. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature?: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown };

const FINISH_REASONS: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/** OpenAI's finish reason; one that is not known ends an answer as any other. */
export function finishReason(stopReason: string): string {
  return FINISH_REASONS[stopReason] ?? 'stop';
}

/** The name that OpenRouter's clients know the format by, and send it back with. */
const FORMAT = 'anthropic-claude-v1';

/** Thinking with its signature, which the caller must send back for Anthropic to go on with a tool's result. */
export function reasoningDetail(index: number, block: Extract<Block, { type: 'thinking' | 'redacted_thinking' }>) {
  return block.type === 'thinking'
    ? { type: 'reasoning.text', text: block.thinking, signature: block.signature ?? null, format: FORMAT, index }
    : { type: 'reasoning.encrypted', data: block.data, format: FORMAT, index };
}
