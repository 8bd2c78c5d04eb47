/** Chat answers in OpenAI's former shapes. */

import type { Thing } from '../../wire/json-object.ts';
import { parsedEvent, sseDataIn, sseEvent } from '../../wire/sse.ts';

/** Says an answer, or a chunk of one, in another shape. */
export type Retelling = (answer: Thing) => Thing;

/** A chat request that stands for one in another shape, and how its answer is told. */
export interface StandIn<B> {
  readonly body: B;
  readonly retell: Retelling;
}

/** The events of a stream, each in the other shape. */
export function retold(events: Uint8Array, retell: Retelling): Uint8Array {
  const chunks = sseDataIn(events).map((data) => sseEvent(JSON.stringify(retell(parsedEvent(data)))));
  return Buffer.from(chunks.join(''));
}

/** The choices of an answer or a chunk. */
export function choicesOf({ choices }: Thing): readonly Thing[] {
  return Array.isArray(choices) ? choices : [];
}
