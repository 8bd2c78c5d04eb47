interface Timer {
  readonly dueAtMs: number;
  readonly run: () => void;
}

/** A time that jumps from one timer to the next. */
export class VirtualTime {
  nowMs = 0;
  /** The next timer is the last one. */
  private readonly timers: Timer[] = [];

  /** Timers that are due at the same time run in the order in which they were set. */
  schedule(delayMs: number, run: () => void): void {
    const dueAtMs = this.nowMs + Math.max(delayMs, 0);
    let index = this.timers.length;
    while (index > 0 && (this.timers[index - 1] as Timer).dueAtMs <= dueAtMs) index--;
    this.timers.splice(index, 0, { dueAtMs, run });
  }

  /** Runs all timers, and those that they set. */
  run(): void {
    for (let timer = this.timers.pop(); timer; timer = this.timers.pop()) {
      this.nowMs = timer.dueAtMs;
      timer.run();
    }
  }
}
