/** Bytes on their way from a vendor to a client, such as sound, and who owes what when they do not arrive. */
import { toUpstreamError, UpstreamError } from '../errors.ts';
import type { StreamWriter } from './billing-engine.ts';
import type { Purchase } from './purchase.ts';

/** A client that lets its bytes wait for longer, in all, may be why a vendor gives up. */
const MAX_BACKPRESSURE_MS = 5_000;

/** What a vendor sends, as it comes. */
export interface ProviderByteStream {
  readonly mediaType: string;
  /** May be read once. It throws an UpstreamError when it breaks off. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface ByteWriter extends StreamWriter {
  /** Sends the head of the answer; only the first call counts. */
  begin(mediaType: string): void;
  /** Returns a promise when there is no room for more until that resolves. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Whether anyone receives what is written. */
  readonly isListening: boolean;
}

/**
 * Passes bytes on until their end, or until nobody listens: all of them are invoiced from the first one on, received or
 * not.
 * @returns why it broke off where the client owes it all the same
 * @throws UpstreamError where the client owes nothing: the vendor has not delivered, though the client kept up
 */
export async function relayBytes(
  { bytes, mediaType }: ProviderByteStream,
  purchase: Pick<Purchase, 'markLastAttemptFailed'>,
  client: ByteWriter,
  now = () => performance.now(),
): Promise<UpstreamError | undefined> {
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
    new UpstreamError('upstream_error', 'The upstream sent nothing', { status: 200 }),
  );
}
