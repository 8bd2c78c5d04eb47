import { BlockedByEventError, type EventBatch, LeaseLostError, type Runtime } from './ports.ts';

const RETRY_FIRST_WAIT_MS = 50;
const RETRY_LONGEST_WAIT_MS = 5_000;

/** Where a pump delivers. `apply` is idempotent: the same batch may come again, since delivery is at least once. */
export interface Sink {
  readonly name: string;
  /** The position up to which everything was applied. */
  checkpoint(): Promise<bigint>;
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
  follow: (after: bigint, signal: AbortSignal) => AsyncIterable<EventBatch>,
  sink: Sink,
  signal: AbortSignal,
  runtime: Pick<Runtime, 'sleep' | 'alarm'>,
): Promise<void> {
  let failures = 0;
  let stoppedAt: bigint | undefined;
  while (!signal.aborted) {
    try {
      for await (const batch of follow(await sink.checkpoint(), signal)) {
        if (signal.aborted) return;
        await sink.apply(batch);
        failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LeaseLostError) throw error;
      const stop = error instanceof BlockedByEventError ? error : undefined;
      if (!stop) runtime.alarm(`${sink.name} could not apply a batch; trying again`, error);
      else if (stop.position !== stoppedAt) runtime.alarm(stop.message, stop);
      stoppedAt = stop?.position;
      await runtime.sleep(Math.min(RETRY_FIRST_WAIT_MS * 2 ** failures++, RETRY_LONGEST_WAIT_MS), signal);
    }
  }
}
