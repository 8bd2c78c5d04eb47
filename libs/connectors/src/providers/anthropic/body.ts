/** What is read of a chat request in OpenAI's shape. */

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

/** What the caller must have and Anthropic cannot give. */
export function unsupportedError(message: string): UpstreamError {
  return new UpstreamError('invalid_request', message);
}

/**
 * A mark for Anthropic's cache, as OpenRouter's clients set it. Always of the short life: the long one costs more than
 * what is charged for a cache write.
 */
export function toCacheControl(mark: unknown): JsonObject {
  return typeof mark === 'object' && mark !== null ? { cache_control: { type: 'ephemeral' } } : {};
}
