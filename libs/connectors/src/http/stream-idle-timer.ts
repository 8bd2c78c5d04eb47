/** A model that has started its output pauses for longer than this only while it reasons. */
const PAUSE_MS = 1_000;

/**
 * Measures how long a stream was idle: the time to its first output, and later every gap of at least `PAUSE_MS`. Time
 * in which the receiver was full does not count.
 */
export class StreamIdleTimer {
  private totalMs = 0;
  /** The part of `totalMs` before the first chunk. */
  private firstIdleMs: number | undefined;
  private since = performance.now();
  private isPaused = false;
  private hasStartedOutput = false;

  get hasOutput(): boolean {
    return this.hasStartedOutput;
  }

  /** Records that the model has generated something. */
  markOutput(): void {
    this.hasStartedOutput = true;
  }

  /** Records that a chunk has arrived, whatever its content. */
  recordActivity(): void {
    const now = performance.now();
    this.totalMs = this.getTotalMs(now);
    this.firstIdleMs ??= this.totalMs;
    this.since = now;
  }

  /**
   * Records that reading has paused because the receiver is full, or has ended (true), or that it has resumed (false).
   */
  setPaused(isPaused: boolean): void {
    this.recordActivity();
    this.isPaused = isPaused;
  }

  /** @param graceMs how much of the time to the first chunk does not count as idle */
  getIdleMs(graceMs: number): number {
    const milliseconds = this.getTotalMs(performance.now());
    return milliseconds - Math.min(this.firstIdleMs ?? milliseconds, graceMs);
  }

  private getTotalMs(now: number): number {
    if (this.isPaused) return this.totalMs;
    const gap = now - this.since;
    return !this.hasStartedOutput || gap >= PAUSE_MS ? this.totalMs + gap : this.totalMs;
  }
}
