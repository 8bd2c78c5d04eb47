/** Thoughts with their signatures, which a model of Anthropic's must get back with the results of its tools. */
import { isJsonObject, type JsonObject } from '#kernel';

/** The name that OpenRouter's clients know the format by; signatures of other vendors have other names, and mean nothing here. */
const REASONING_FORMAT = 'anthropic-claude-v1';

/** A block of the assistant's, as a chat carries it; nothing for thoughts that nobody has signed. */
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

/** What an answer has of a thought. */
export type ReasoningBlock = { readonly text: string; readonly signature?: string } | { readonly encrypted: string };

/** The thoughts in a piece of a chat answer, or in all of it: in detail where they are there, else as plain text. */
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
