/** The fields of a chat request in OpenAI's format that are translated for Anthropic. */

import { type Reasoning, UpstreamError } from '#application';
import { type JsonObject } from '#kernel';

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
 * Returns the field `cache_control` if the client has set it, as in OpenRouter's API; else no field. The lifetime is
 * always the short one, because a long one costs more than the gateway charges for a cache write.
 */
export function toCacheControl(mark: unknown): JsonObject {
  return typeof mark === 'object' && mark !== null ? { cache_control: { type: 'ephemeral' } } : {};
}
