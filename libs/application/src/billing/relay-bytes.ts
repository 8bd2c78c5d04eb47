/** Relays bytes such as audio from a provider to a client, and decides who pays if the stream is interrupted. */
import { toUpstreamError, UpstreamError } from '../errors.ts';
import type { StreamWriter } from './billing-engine.ts';
import type { Purchase } from './purchase.ts';

/** A client that delayed the stream for longer than this in total may be the reason why the provider gave up. */
const MAX_BACKPRESSURE_MS = 5_000;

/** A byte stream as the provider sends it. */
export interface ProviderByteStream {
  readonly mediaType: string;
  /** Can be read once. Throws an UpstreamError if the stream is interrupted. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface ByteWriter extends StreamWriter {
  /** Sends the head of the response; later calls have no effect. */
  begin(mediaType: string): void;
  /** @returns undefined or, if the buffer is full, a promise that resolves when more can be written */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Whether the client still receives what is written. */
  readonly isListening: boolean;
}

/**
 * Forwards bytes until the end, or until no one receives them. Once the first byte has arrived, the provider invoices
 * all of them.
 * @returns the failure that interrupted the stream if the client owes the response anyway, otherwise undefined
 * @throws UpstreamError if the client owes nothing: no byte has arrived, or the provider failed although the client was
 *   still connected and not too slow
 */
export async function relayBytes(
  { bytes, mediaType }: ProviderByteStream,
  purchase: Pick<Purchase, 'markLastAttemptFailed' | 'runtime'>,
  client: ByteWriter,
): Promise<UpstreamError | undefined> {
  const { now } = purchase.runtime;
  let waitedMs = 0;
  try {
    for await (const chunk of bytes) {
      if (chunk.length === 0) continue;
      client.begin(mediaType);
      const drained = client.write(chunk);
      if (drained) {
        const from = now();
        await drained;
        waitedMs += now() - from;
      }
      if (!client.isListening) return undefined;
    }
  } catch (error) {
    const failure = purchase.markLastAttemptFailed(toUpstreamError(error));
    if (client.hasStarted && (failure.code === 'client_disconnected' || waitedMs > MAX_BACKPRESSURE_MS)) return failure;
    throw failure;
  }
  if (client.hasStarted) return undefined;
  throw purchase.markLastAttemptFailed(
    new UpstreamError('upstream_error', 'The provider sent an empty response', { status: 200 }),
  );
}
