import type { EventReader, EventStore, NewEvent, StreamHead } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

/** How often the end of the log is read, which includes the appends of other processes. */
const END_INTERVAL_MS = 1_000;
/** If the end of the log could not be read for this time, the lag is unknown. */
const MAX_UNKNOWN_END_MS = 5_000;
/** Minimum time between two samples. */
const SAMPLE_INTERVAL_MS = 100;
/**
 * Maximum number of samples; they span about a minute or more. Further appends are not sampled, because the oldest
 * sample determines the lag. If all samples are applied but appends after them are not, the reported lag is too low.
 */
const MAX_SAMPLES = 600;

interface Sample {
  readonly position: bigint;
  readonly at: number;
}

/**
 * Measures how far the projector lags, as observed by one process: the age of the oldest recorded append that the read
 * models do not include yet. Without appends the lag is 0.
 */
export class ProjectorLag {
  private samples: Sample[] = [];
  /** The last append, whether or not it is a sample. */
  private latest: Sample | undefined;
  /** When the end of the log was last read; undefined if it is not followed. */
  private endReadAt: number | undefined;

  /** Reads the end of the log every second until `stop` is called. Without this, only recorded appends count. */
  followEnd(store: Pick<EventReader, 'readLastPosition'>): { stop(): void } {
    this.endReadAt ??= performance.now();
    const readEnd = () => this.recordEnd(store).catch(() => {}); // `measureMs` reports it
    const timer = setInterval(() => void readEnd(), END_INTERVAL_MS).unref();
    return { stop: () => clearInterval(timer) };
  }

  /** Returns a view of the store that records the appends made through it. */
  withLagTracking(store: EventStore): EventStore {
    const append = async (
      stream: string,
      expected: number,
      events: readonly NewEvent[],
    ): Promise<StreamHead | 'stale'> => {
      const head = await store.append(stream, expected, events);
      if (head !== 'stale') this.recordAppend(head.position);
      return head;
    };
    return {
      append,
      read: (stream, after) => store.read(stream, after),
      readHead: (stream) => store.readHead(stream),
      readLastPosition: () => store.readLastPosition(),
      readAll: (after) => store.readAll(after),
      subscribe: (after, signal) => store.subscribe(after, signal),
    };
  }

  /** Records the end of the log. From now on the lag is unknown if it is not recorded again within 5 s. */
  async recordEnd(store: Pick<EventReader, 'readLastPosition'>): Promise<void> {
    this.recordAppend(await store.readLastPosition());
    this.endReadAt = performance.now();
  }

  /** @throws Error if the database does not respond, or the end of the log has been unknown for 5 s */
  async measureMs(progress: ProjectionProgress, projections: readonly string[]): Promise<number> {
    if (this.endReadAt !== undefined && performance.now() - this.endReadAt > MAX_UNKNOWN_END_MS)
      throw new Error('the event store does not respond, so the lag is unknown');
    const applied = await progress.loadAppliedPosition(projections);
    this.samples = this.samples.filter(({ position }) => position > applied);
    const oldest = this.samples[0] ?? this.latest;
    return oldest && oldest.position > applied ? performance.now() - oldest.at : 0;
  }

  /** Records an append, which may be that of another process. */
  recordAppend(position: bigint): void {
    this.latest = { position, at: performance.now() };
    const last = this.samples.at(-1);
    if (this.samples.length < MAX_SAMPLES && (!last || this.latest.at - last.at >= SAMPLE_INTERVAL_MS))
      this.samples.push(this.latest);
  }
}
