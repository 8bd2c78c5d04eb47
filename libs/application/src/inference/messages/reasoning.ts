/** Converts signed reasoning, which Anthropic's models require together with the results of their tools. */
import { isJsonObject, type JsonObject } from '#kernel';
import { encodeReasoning, isEncodedReasoning, type ReasoningDecoder } from '../responses/reasoning.ts';

/** OpenRouter's name of Anthropic's format. */
const REASONING_FORMAT = 'anthropic-claude-v1';
/** Formats of Gemini, whose signatures belong to a call. They are sent as redacted thinking, which clients send back. */
const GEMINI_FORMAT = /^google-gemini-/;

/**
 * Converts a reasoning block to `reasoning_details` of a chat. Unsigned text is omitted.
 * @param param path of the block in the request
 * @throws InvalidRequestError (400) if the client has changed a signature of Gemini
 */
export function toReasoningDetails(
  { type, thinking, signature, data }: JsonObject,
  { index, decoder, param }: { readonly index: number; readonly decoder: ReasoningDecoder; readonly param: string },
): readonly JsonObject[] {
  if (isEncodedReasoning(data)) return decoder.decodeText(data, `${param}.data`);
  if (type === 'redacted_thinking') {
    return typeof data === 'string' ? [{ type: 'reasoning.encrypted', data, format: REASONING_FORMAT, index }] : [];
  }
  if (typeof signature !== 'string' || signature === '') return [];
  const text = typeof thinking === 'string' ? thinking : '';
  return [{ type: 'reasoning.text', text, signature, format: REASONING_FORMAT, index }];
}

/** A part of the reasoning in a completion. */
export type ReasoningBlock = { readonly text: string; readonly signature?: string } | { readonly encrypted: string };

/**
 * Returns the reasoning in a completion or a chunk: from its `reasoning_details`, or else from its plain text; then the
 * signatures of calls.
 */
export function extractReasoning(details: unknown, reasoning: unknown): readonly ReasoningBlock[] {
  const all = Array.isArray(details) ? details.filter(isJsonObject) : [];
  const detailed = all.flatMap(toReasoningBlocks);
  const texts = typeof reasoning === 'string' && reasoning !== '' ? [{ text: reasoning }] : [];
  const signatures = all.filter(isCallSignature).map((detail) => ({ encrypted: encodeReasoning([detail]) }));
  return [...(detailed.length > 0 ? detailed : texts), ...signatures];
}

function isCallSignature({ type, format, id }: JsonObject): boolean {
  return type === 'reasoning.encrypted' && GEMINI_FORMAT.test(String(format)) && typeof id === 'string';
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
