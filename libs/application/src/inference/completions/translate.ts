/** Translates chat completions to OpenAI's legacy formats. */

import { type JsonObject } from '#kernel';

import { formatSseEvent, parseEventJson, parseSseEvents } from '../../wire/sse.ts';

/** Translates a chat completion, or a chunk of one, to another format. */
export type TranslateChunk = (completion: JsonObject) => JsonObject;

/** A chat request that replaces one in another format, and the translation of its completion back to that format. */
export interface TranslatedRequest<B> {
  readonly body: B;
  readonly translate: TranslateChunk;
}

/** Translates each SSE event of a stream. */
export function translateEvents(events: Uint8Array, translate: TranslateChunk): Uint8Array {
  const chunks = parseSseEvents(events).map((data) => formatSseEvent(JSON.stringify(translate(parseEventJson(data)))));
  return Buffer.from(chunks.join(''));
}

/** Returns the choices of a completion or of a chunk; empty if it has none. */
export function getChoices({ choices }: JsonObject): readonly JsonObject[] {
  return Array.isArray(choices) ? choices : [];
}
