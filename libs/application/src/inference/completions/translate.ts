/** Chat answers in OpenAI's former shapes. */

import { type JsonObject } from '#kernel';

import { formatSseEvent, parseEventJson, parseSseEvents } from '../../wire/sse.ts';

/** Says an answer, or a chunk of one, in another shape. */
export type TranslateChunk = (completion: JsonObject) => JsonObject;

/** A chat request that stands for one in another shape, and how its answer is told. */
export interface TranslatedRequest<B> {
  readonly body: B;
  readonly translate: TranslateChunk;
}

/** The events of a stream, each in the other shape. */
export function translateEvents(events: Uint8Array, translate: TranslateChunk): Uint8Array {
  const chunks = parseSseEvents(events).map((data) => formatSseEvent(JSON.stringify(translate(parseEventJson(data)))));
  return Buffer.from(chunks.join(''));
}

/** The choices of an answer or a chunk. */
export function getChoices({ choices }: JsonObject): readonly JsonObject[] {
  return Array.isArray(choices) ? choices : [];
}
