import { ByteAccumulator } from '../../byte-accumulator.ts';
import { InvalidRequestError } from '../../errors.ts';

export interface StartedBody {
  /** Length of the body in bytes; undefined if it is longer than what was read. */
  readonly length: number | undefined;
  /** The complete body, including what was read already. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Reads a body until its end, but no further than `maxBytes` and the chunk that exceeds them.
 * @throws InvalidRequestError (400) if the body ends early; any error of the body that has a status
 */
export async function readStart(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<StartedBody> {
  const chunks = body[Symbol.asyncIterator]();
  const start = new ByteAccumulator(); // many small chunks would take far more memory
  while (start.size <= maxBytes) {
    const { done, value } = await chunks.next().catch(throwBodyError);
    if (done) return { length: start.size, body: join(start.bytes) };
    start.add(value);
  }
  return { length: undefined, body: join(start.bytes, chunks) };
}

function throwBodyError(error: { readonly statusCode?: unknown }): never {
  throw error.statusCode ? error : new InvalidRequestError(400, 'The request body ended early');
}

async function* join(start: Uint8Array, rest?: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  if (start.length > 0) yield start;
  if (rest) yield* { [Symbol.asyncIterator]: () => rest };
}
