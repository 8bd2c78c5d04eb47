/** A model that speaks makes no longer pauses, unless it thinks. */
const PAUSE_MS = 1_000;

/** How long an answer is silent while it comes: until its first word, and in pauses behind it. The receiver's own are not its. */
export class StreamIdleTimer {
  private total = 0;
  /** What the first piece took of it. */
  private first: number | undefined;
  private since = performance.now();
  private waiting = false;
  private speaking = false;

  /** Whether anything was generated until now. */
  get broken(): boolean {
    return this.speaking;
  }

  /** Something was generated. */
  break(): void {
    this.speaking = true;
  }

  /** A piece has come, whatever is in it. */
  heard(): void {
    const now = performance.now();
    this.total = this.until(now);
    this.first ??= this.total;
    this.since = now;
  }

  /** Nothing is read until there is room, or is read again. */
  wait(waiting: boolean): void {
    this.heard();
    this.waiting = waiting;
  }

  /** @param excusedMs so much of the wait for the first piece is none */
  beyond(excusedMs: number): number {
    const milliseconds = this.until(performance.now());
    return milliseconds - Math.min(this.first ?? milliseconds, excusedMs);
  }

  private until(now: number): number {
    if (this.waiting) return this.total;
    const gap = now - this.since;
    return !this.speaking || gap >= PAUSE_MS ? this.total + gap : this.total;
  }
}
