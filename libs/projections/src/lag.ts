import type { EventStore, NewEvent, StreamHead } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

/** Appends are remembered at most this often. */
const SAMPLE_INTERVAL_MS = 100;
/** A minute's worth: the oldest matter. */
const MAX_SAMPLES = 600;

interface Sample {
  readonly position: bigint;
  readonly at: number;
}

/**
 * How far the projector is behind, as seen by one process: the age of the oldest of its own appends that the read models
 * do not show yet. Without traffic there is nothing to be behind of.
 */
export class ProjectorLag {
  private samples: Sample[] = [];
  /** The last append, which may have come too soon behind a sample to be one. */
  private latest: Sample | undefined;

  /** The store, whose appends are watched. */
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

  /** An append that was seen, by whomever it was. */
  recordAppend(position: bigint): void {
    this.latest = { position, at: performance.now() };
    const last = this.samples.at(-1);
    if (this.samples.length < MAX_SAMPLES && (!last || this.latest.at - last.at >= SAMPLE_INTERVAL_MS))
      this.samples.push(this.latest);
  }
}
