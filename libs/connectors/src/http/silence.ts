/** A model that speaks makes no longer pauses, unless it thinks. */
const PAUSE_MS = 1_000;

/** How long an answer is silent while it comes: until its first word, and in pauses behind it. The receiver's own are not its. */
export class Silence {
  private total = 0;
  /** What the first piece took of it. */
  private first: number | undefined;
  private since = performance.now();
  private waiting = false;
  private speaks = false;

  /** A piece has come. @param speaks whether anything was generated until now */
  heard(speaks: boolean): void {
    this.total = this.milliseconds;
    this.first ??= this.total;
    this.since = performance.now();
    this.speaks = speaks;
  }

  /** Nothing is read until there is room, or is read again. */
  wait(waiting: boolean): void {
    this.heard(this.speaks);
    this.waiting = waiting;
  }

  /** @param excusedMs so much of the wait for the first piece is none */
  beyond(excusedMs: number): number {
    const { milliseconds } = this;
    return milliseconds - Math.min(this.first ?? milliseconds, excusedMs);
  }

  private get milliseconds(): number {
    if (this.waiting) return this.total;
    const gap = performance.now() - this.since;
    return !this.speaks || gap >= PAUSE_MS ? this.total + gap : this.total;
  }
}
