/** Detects that a leader cannot work, although its lease could be renewed: the lease has a connection of its own. */

import { withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';

/** How long a leader may make no progress. */
const MAX_STALL_MS = 5_000;
/** A probe that takes longer has failed. Without connections, each query waits for one. */
const PROBE_TIMEOUT_MS = 2_000;

/** How far a reader of the log has come. */
export interface ReaderProgress {
  /** Whether the log has events that the reader has not processed. */
  readonly isLagging: boolean;
  /** Changes when the reader advances. */
  readonly state: string;
}

/**
 * Returns the progress of the readers that the leader runs, by name. Uses the connections that the work uses, and so
 * throws if these cannot work.
 */
export type WorkProbe = () => Promise<ReadonlyMap<string, ReaderProgress>>;

export interface StallLimits {
  readonly maxStallMs?: number;
  readonly probeTimeoutMs?: number;
  readonly now?: () => number;
}

export class StallDetector {
  private readonly maxStallMs: number;
  private readonly probeTimeoutMs: number;
  private readonly now: () => number;
  /** When a probe last succeeded after one that succeeded. A single one may be luck while most connections break. */
  private respondedAt: number;
  private hasResponded = true;
  /** When each reader last advanced, or last had nothing to process. */
  private advances = new Map<string, { readonly state: string; readonly at: number }>();
  private works = false;

  constructor(
    private readonly probe: WorkProbe,
    { maxStallMs = MAX_STALL_MS, probeTimeoutMs = PROBE_TIMEOUT_MS, now = () => performance.now() }: StallLimits = {},
  ) {
    this.maxStallMs = maxStallMs;
    this.probeTimeoutMs = probeTimeoutMs;
    this.now = now;
    this.respondedAt = now();
  }

  /** Whether the last probe succeeded, and each reader had nothing to process or had advanced since the one before. */
  get isWorking(): boolean {
    return this.works;
  }

  /** Probes once. Returns why the leader cannot work if that has been so for too long. */
  async findStall(): Promise<string | undefined> {
    const progress = await this.probeInTime();
    const now = this.now();
    if (progress instanceof Error) {
      this.hasResponded = false;
      this.works = false;
      this.advances.clear(); // what is measured afterwards begins when the stores respond again
      return now - this.respondedAt < this.maxStallMs ? undefined : `its stores do not respond: ${progress.message}`;
    }
    if (this.hasResponded) this.respondedAt = now;
    this.hasResponded = true;
    this.works = [...progress].every(([name, { isLagging, state }]) => {
      const last = this.advances.get(name);
      return !isLagging || (last !== undefined && last.state !== state);
    });
    this.advances = new Map(
      [...progress].map(([name, { isLagging, state }]) => {
        const last = this.advances.get(name);
        return [name, isLagging && last?.state === state ? last : { state, at: now }];
      }),
    );
    const stalled = [...this.advances].filter(([, { at }]) => now - at >= this.maxStallMs).map(([name]) => name);
    return stalled.length === 0 ? undefined : `it does not process new events: ${stalled.join(', ')}`;
  }

  private async probeInTime(): Promise<ReadonlyMap<string, ReaderProgress> | Error> {
    try {
      return await withTimeout(nodeTimers, this.probeTimeoutMs, this.probe(), () => new Error('no response in time'));
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}
