/** Thoughts with their signatures, which a model of Anthropic's must get back with the results of its tools. */
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';

/** The name that OpenRouter's clients know the format by; signatures of other vendors have other names, and mean nothing here. */
const FORMAT = 'anthropic-claude-v1';

/** A block of the assistant's, as a chat carries it; nothing for thoughts that nobody has signed. */
export function toReasoningDetails(
  { type, thinking, signature, data }: JsonObject,
  index: number,
): readonly JsonObject[] {
  if (type === 'redacted_thinking') {
    return typeof data === 'string' ? [{ type: 'reasoning.encrypted', data, format: FORMAT, index }] : [];
  }
  if (typeof signature !== 'string' || signature === '') return [];
  const text = typeof thinking === 'string' ? thinking : '';
  return [{ type: 'reasoning.text', text, signature, format: FORMAT, index }];
}

/** What an answer has of a thought. */
export type ReasoningBlock = { readonly text: string; readonly signature?: string } | { readonly encrypted: string };

/** The thoughts in a piece of a chat answer, or in all of it: in detail where they are there, else as plain text. */
export function extractReasoning(details: unknown, reasoning: unknown): readonly ReasoningBlock[] {
  const detailed = Array.isArray(details) ? details.filter(isJsonObject).flatMap(thoughtIn) : [];
  if (detailed.length > 0) return detailed;
  return typeof reasoning === 'string' && reasoning !== '' ? [{ text: reasoning }] : [];
}

function thoughtIn({ type, text, signature, data, format }: JsonObject): readonly ReasoningBlock[] {
  const isOurs = format === undefined || format === null || format === FORMAT;
  if (type === 'reasoning.encrypted') return isOurs && typeof data === 'string' ? [{ encrypted: data }] : [];
  if (type !== 'reasoning.text') return [];
  const said = typeof text === 'string' ? text : '';
  if (typeof signature === 'string' && signature !== '' && isOurs) return [{ text: said, signature }];
  return said === '' ? [] : [{ text: said }];
}
