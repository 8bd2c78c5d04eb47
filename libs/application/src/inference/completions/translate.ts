/** Types and helpers that the translations of chat completions to OpenAI's legacy formats share. */

import { type JsonObject } from '#kernel';

import { formatSseEvent, parseEventJson, parseSseEvents } from '../../wire/sse.ts';

/** Translates a chat completion, or a chunk of one, to another format. */
export type TranslateChunk = (completion: JsonObject) => JsonObject;

/**
 * A chat request that was converted from a legacy request, and the function that translates its completion to the
 * format that the client expects.
 */
export interface TranslatedRequest<B> {
  readonly body: B;
  readonly translate: TranslateChunk;
}

/**
 * Translates the data of each SSE event. `[DONE]` is not accepted, because it is not JSON. Omits comments and event
 * types.
 * @throws UpstreamError if the data of an event is not JSON
 */
export function translateEvents(events: Uint8Array, translate: TranslateChunk): Uint8Array {
  const chunks = parseSseEvents(events).map((data) => formatSseEvent(JSON.stringify(translate(parseEventJson(data)))));
  return Buffer.from(chunks.join(''));
}

/** Returns the choices of a completion or of a chunk; empty if it has none. */
export function getChoices({ choices }: JsonObject): readonly JsonObject[] {
  return Array.isArray(choices) ? choices : [];
}
