/** A model that speaks makes no longer pauses, unless it thinks. */
const PAUSE_MS = 1_000;

/** How long an answer is silent while it comes: until its first word, and in pauses behind it. The receiver's own are not its. */
export class StreamIdleTimer {
  private totalMs = 0;
  /** What the first piece took of it. */
  private firstIdleMs: number | undefined;
  private since = performance.now();
  private isPaused = false;
  private hasStartedOutput = false;

  /** Whether anything was generated until now. */
  get hasOutput(): boolean {
    return this.hasStartedOutput;
  }

  /** Something was generated. */
  markOutput(): void {
    this.hasStartedOutput = true;
  }

  /** A piece has come, whatever is in it. */
  recordActivity(): void {
    const now = performance.now();
    this.totalMs = this.getTotalMs(now);
    this.firstIdleMs ??= this.totalMs;
    this.since = now;
  }

  /** Nothing is read until there is room, or is read again. */
  setPaused(isPaused: boolean): void {
    this.recordActivity();
    this.isPaused = isPaused;
  }

  /** @param graceMs so much of the wait for the first piece is none */
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
