import { BlockedByEventError, type EventBatch, LeaseLostError, type Runtime } from './ports.ts';
import { calculateBackoffMs } from './retry.ts';

const BACKOFF = { minMs: 50, maxMs: 5_000 };

/**
 * Receives the events of a pump. Delivery is at least once: a batch may be delivered again, so `apply` must be
 * idempotent.
 */
export interface EventSink {
  readonly name: string;
  /** Returns the position up to which everything was applied. */
  loadCheckpoint(): Promise<bigint>;
  /** Applies a batch and advances the checkpoint to `batch.position`, atomically if the sink can. */
  apply(batch: EventBatch): Promise<void>;
}

/**
 * Delivers events in order to a sink until `signal` aborts. After a failure it reports the error, waits (longer after
 * each failure in a row, up to 5 s), and continues from the checkpoint of the sink. A sink that stays blocked by the
 * same event is reported once. A programming error does not end the pump either: no event is skipped, the lag of the
 * sink and the reports show the failure, and a corrected program continues from the checkpoint.
 * @throws LeaseLostError if another process now writes to this sink
 */
export async function pump(
  subscribe: (after: bigint, signal: AbortSignal) => AsyncIterable<EventBatch>,
  sink: EventSink,
  signal: AbortSignal,
  runtime: Pick<Runtime, 'sleep' | 'reportError' | 'chance'>,
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
      if (!blocked) runtime.reportError(`${sink.name} could not apply a batch; retrying`, error);
      else if (blocked.position !== blockedPosition) runtime.reportError(blocked.message, blocked);
      blockedPosition = blocked?.position;
      await runtime.sleep(calculateBackoffMs({ ...BACKOFF, chance: runtime.chance }, failures++), { signal });
    }
  }
}
