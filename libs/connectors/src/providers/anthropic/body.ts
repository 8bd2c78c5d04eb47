/** The fields of a chat request in OpenAI's format that are translated for Anthropic. */

import { type Reasoning, UpstreamError } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

export interface ChatRequestBody extends JsonObject {
  readonly model?: unknown;
  readonly messages?: readonly JsonObject[];
  readonly max_completion_tokens?: number | null;
  readonly max_tokens?: number | null;
  readonly n?: number | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly top_k?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly user?: string | null;
  readonly tools?: readonly JsonObject[] | null;
  readonly tool_choice?: unknown;
  readonly parallel_tool_calls?: boolean | null;
  readonly response_format?: JsonObject | null;
  readonly reasoning?: Reasoning;
}

/** For a parameter or value that Anthropic does not support and that must not be ignored. */
export function unsupportedError(message: string): UpstreamError {
  return new UpstreamError('invalid_request', message);
}

/**
 * Returns the field `cache_control` if the client has set it, as in OpenRouter's API; else no field.
 * https://docs.claude.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration
 * @throws UpstreamError with `invalid_request` for a lifetime that Anthropic does not have
 */
export function toCacheControl(mark: unknown): JsonObject {
  if (!isJsonObject(mark)) return {};
  const { ttl = null } = mark;
  if (ttl !== null && ttl !== '5m' && ttl !== '1h') throw unsupportedError('cache_control.ttl must be "5m" or "1h"');
  return { cache_control: { type: 'ephemeral', ...(ttl ? { ttl } : {}) } };
}
