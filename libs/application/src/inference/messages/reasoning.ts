/** Converts signed reasoning, which Anthropic's models require together with the results of their tools. */
import { isJsonObject, type JsonObject } from '#kernel';

/** OpenRouter's name of Anthropic's format. Signatures in the formats of other providers cannot be used here. */
const REASONING_FORMAT = 'anthropic-claude-v1';

/** Converts a reasoning block to `reasoning_details` of a chat. Unsigned text is omitted. */
export function toReasoningDetails(
  { type, thinking, signature, data }: JsonObject,
  index: number,
): readonly JsonObject[] {
  if (type === 'redacted_thinking') {
    return typeof data === 'string' ? [{ type: 'reasoning.encrypted', data, format: REASONING_FORMAT, index }] : [];
  }
  if (typeof signature !== 'string' || signature === '') return [];
  const text = typeof thinking === 'string' ? thinking : '';
  return [{ type: 'reasoning.text', text, signature, format: REASONING_FORMAT, index }];
}

/** A part of the reasoning in a completion. */
export type ReasoningBlock = { readonly text: string; readonly signature?: string } | { readonly encrypted: string };

/** Returns the reasoning in a completion or a chunk: from its `reasoning_details`, or else from its plain text. */
export function extractReasoning(details: unknown, reasoning: unknown): readonly ReasoningBlock[] {
  const detailed = Array.isArray(details) ? details.filter(isJsonObject).flatMap(toReasoningBlocks) : [];
  if (detailed.length > 0) return detailed;
  return typeof reasoning === 'string' && reasoning !== '' ? [{ text: reasoning }] : [];
}

function toReasoningBlocks({ type, text, signature, data, format }: JsonObject): readonly ReasoningBlock[] {
  const isAnthropicFormat = format === undefined || format === null || format === REASONING_FORMAT;
  if (type === 'reasoning.encrypted') return isAnthropicFormat && typeof data === 'string' ? [{ encrypted: data }] : [];
  if (type !== 'reasoning.text') return [];
  const reasoningText = typeof text === 'string' ? text : '';
  if (typeof signature === 'string' && signature !== '' && isAnthropicFormat)
    return [{ text: reasoningText, signature }];
  return reasoningText === '' ? [] : [{ text: reasoningText }];
}
