import type { EventStore, NewEvent, StreamHead } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

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

  async measureMs(progress: ProjectionProgress, projections: readonly string[]): Promise<number> {
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
