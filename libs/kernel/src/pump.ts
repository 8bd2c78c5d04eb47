import { BlockedByEventError, type EventBatch, LeaseLostError, type Runtime } from './ports.ts';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 5_000;

/** Where a pump delivers. `apply` is idempotent: the same batch may come again, since delivery is at least once. */
export interface EventSink {
  readonly name: string;
  /** The position up to which everything was applied. */
  loadCheckpoint(): Promise<bigint>;
  /** Applies a batch and moves the checkpoint to `batch.position`, in one step where the sink can. */
  apply(batch: EventBatch): Promise<void>;
}

/**
 * Feeds facts in order into a sink until `signal` aborts. When something fails, the sink is asked where it stands and
 * the facts behind that come again, after a growing wait and with an alarm. Other pumps run on meanwhile. Before a
 * fact that the sink cannot take, one alarm is enough.
 * @throws LeaseLostError when another process writes this sink now
 */
export async function pump(
  subscribe: (after: bigint, signal: AbortSignal) => AsyncIterable<EventBatch>,
  sink: EventSink,
  signal: AbortSignal,
  runtime: Pick<Runtime, 'sleep' | 'reportError'>,
): Promise<void> {
  let failures = 0;
  let blockedPosition: bigint | undefined;
  while (!signal.aborted) {
    try {
      for await (const batch of subscribe(await sink.loadCheckpoint(), signal)) {
        if (signal.aborted) return;
        await sink.apply(batch);
        failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LeaseLostError) throw error;
      const blocked = error instanceof BlockedByEventError ? error : undefined;
      if (!blocked) runtime.reportError(`${sink.name} could not apply a batch; trying again`, error);
      else if (blocked.position !== blockedPosition) runtime.reportError(blocked.message, blocked);
      blockedPosition = blocked?.position;
      await runtime.sleep(Math.min(MIN_BACKOFF_MS * 2 ** failures++, MAX_BACKOFF_MS), signal);
    }
  }
}
