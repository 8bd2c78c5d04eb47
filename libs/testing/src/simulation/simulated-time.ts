/** After so many timers the event loop does an iteration. */
const TIMERS_PER_ITERATION = 50;

interface Timer {
  readonly dueAtMs: number;
  readonly sequence: number;
  work: (() => void) | undefined;
}

/** The time advanced too often without coming to an end: tasks wake each other without progress. */
export class EndlessSimulationError extends Error {
  override readonly name = 'EndlessSimulationError';
}

/**
 * The time of a simulated world, which jumps from one timer to the next. Between two timers all tasks run until they
 * wait for a timer again. They must not wait for anything else, such as real I/O. So a run depends only on its timers.
 */
export class SimulatedTime {
  /** Milliseconds since the start of the simulation. */
  private current = 0;
  private sequence = 0;
  private timerRuns = 0;
  /** A binary heap: each timer is due before its two children. */
  private readonly heap: Timer[] = [];

  constructor(private readonly maxTimerRuns = 2_000_000) {}

  get nowMs(): number {
    return this.current;
  }

  /** How many timers have run. */
  get runs(): number {
    return this.timerRuns;
  }

  /**
   * Calls `work` after `delayMs`, unless the returned function is called before. Timers that are due at the same time
   * run in the order in which they were started.
   */
  startTimer(delayMs: number, work: () => void): () => void {
    const timer: Timer = { dueAtMs: this.current + Math.max(delayMs, 0), sequence: this.sequence++, work };
    this.push(timer);
    return () => {
      timer.work = undefined;
    };
  }

  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.startTimer(delayMs, resolve);
    });
  }

  /**
   * Runs all timers up to `untilMs`, then sets the time to it.
   * @throws EndlessSimulationError if more timers run than the limit
   */
  async run(untilMs: number): Promise<void> {
    for (await waitUntilIdle(); ; ) {
      const timer = this.heap[0];
      if (!timer || timer.dueAtMs > untilMs) break;
      this.pop();
      if (!timer.work) continue;
      this.timerRuns++;
      if (this.timerRuns > this.maxTimerRuns) throw new EndlessSimulationError(`more than ${this.maxTimerRuns} timers`);
      this.current = timer.dueAtMs;
      timer.work();
      await (this.timerRuns % TIMERS_PER_ITERATION === 0 ? iterateEventLoop() : waitUntilIdle());
    }
    this.current = untilMs;
    await iterateEventLoop();
  }

  private push(timer: Timer): void {
    const { heap } = this;
    let index = heap.length;
    for (; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (isBefore(heap[parent] as Timer, timer)) break;
      heap[index] = heap[parent] as Timer;
      index = parent;
    }
    heap[index] = timer;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Timer;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      const firstChild = 2 * index + 1;
      if (firstChild >= heap.length) break;
      const secondChild = firstChild + 1;
      const child =
        secondChild < heap.length && isBefore(heap[secondChild] as Timer, heap[firstChild] as Timer)
          ? secondChild
          : firstChild;
      if (isBefore(last, heap[child] as Timer)) break;
      heap[index] = heap[child] as Timer;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.dueAtMs < other.dueAtMs || (one.dueAtMs === other.dueAtMs && one.sequence < other.sequence);
}

/** Resolves when no microtask is pending. An iteration of the event loop would take more time than most tasks. */
function waitUntilIdle(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** Lets the event loop do everything else, such as reporting rejections that nobody handles. */
function iterateEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
