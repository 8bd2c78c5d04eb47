import { Clock } from '#application';
import type { Runtime } from '#kernel';
import type { Chance } from './chance.ts';
import type { SimulatedTime } from './simulated-time.ts';

export interface ProcessOptions {
  readonly time: SimulatedTime;
  readonly chance: Chance;
  /** When the simulation starts, in milliseconds since 1970. */
  readonly startMs: number;
  reportError(problem: string, error: unknown): void;
}

/**
 * One run of a process. Everything that it waits for reaches it through `deliver`, so it can be suspended or killed at
 * each of its waits. What it has sent to others by then still arrives there.
 */
export class SimulatedProcess {
  readonly runtime: Runtime;
  readonly clock: Clock;
  /** When the process ended, in milliseconds since the start. */
  endedAtMs: number | undefined;
  /** When heartbeats of the process succeeded, in milliseconds since the start. */
  readonly heartbeatsMs: number[] = [];
  private wasKilled = false;
  private hasLostHost = false;
  private isSuspended = false;
  /** What arrived while the process was suspended. */
  private arrived: (() => void)[] = [];
  private readonly closing = new AbortController();

  /**
   * @param name unique among all runs of all processes
   * @param skewMs how far its clock is ahead
   */
  constructor(
    readonly name: string,
    private readonly options: ProcessOptions,
    skewMs = 0,
  ) {
    this.runtime = this.createRuntime();
    this.clock = new SimulatedClock(options, skewMs);
  }

  get isRunning(): boolean {
    return !this.hasEnded && !this.isSuspended;
  }

  get hasEnded(): boolean {
    return this.endedAtMs !== undefined;
  }

  /** Whether the process ended without any chance to do what it still had to do. */
  get isKilled(): boolean {
    return this.wasKilled;
  }

  /**
   * Returns for how long the process sent no heartbeat: the longest time that ended after `fromMs`, by `atMs`, or endless
   * after its death.
   */
  getHeartbeatGapMs(fromMs: number, atMs: number): number {
    if (this.endedAtMs !== undefined && this.endedAtMs <= atMs) return Number.POSITIVE_INFINITY;
    const timesMs = [...this.heartbeatsMs.filter((timeMs) => timeMs < atMs), atMs];
    return Math.max(0, ...timesMs.map((timeMs, i) => (timeMs > fromMs ? timeMs - (timesMs[i - 1] ?? timeMs) : 0)));
  }

  /** Aborts when the process begins to stop. */
  get stopSignal(): AbortSignal {
    return this.closing.signal;
  }

  /** Whether the servers that the process was connected to know that it has ended. */
  get hasDisconnected(): boolean {
    return this.hasEnded && !this.hasLostHost;
  }

  /**
   * Ends the process at once: nothing that it waits for reaches it any more.
   * @param losesHost whether its host is gone too, so that nobody ends its connections
   */
  kill({ losesHost = false }: { readonly losesHost?: boolean } = {}): void {
    this.wasKilled ||= !this.hasEnded;
    this.hasLostHost ||= losesHost && !this.hasEnded;
    this.exit();
  }

  /** Ends the process, which has nothing to do any more. */
  exit(): void {
    this.endedAtMs ??= this.options.time.nowMs;
    this.arrived = [];
  }

  /** Lets the process end its work. */
  stop(): void {
    this.closing.abort();
  }

  suspend(): void {
    this.isSuspended = true;
  }

  resume(): void {
    this.isSuspended = false;
    for (const work of this.arrived.splice(0)) this.deliver(work);
  }

  /** Runs `work` in the process: at once, when it is resumed, or never if it was killed. */
  deliver(work: () => void): void {
    if (this.hasEnded) return;
    if (this.isSuspended) this.arrived.push(work);
    else work();
  }

  /**
   * Lets the process wait for something outside of it, and returns its result after the response has been on its way
   * for `delayMs`.
   */
  receive<T>(response: Promise<T>, delayMs: number): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const arrive = (work: () => void) => this.options.time.startTimer(delayMs, () => this.deliver(work));
    response.then(
      (value) => void arrive(() => resolve(value)),
      (error) => void arrive(() => reject(error)),
    );
    return promise;
  }

  private createRuntime(): Runtime {
    const { time, chance, reportError } = this.options;
    const processChance = chance.derive(this.name);
    let draws = 0;
    const startTimer: Runtime['startTimer'] = (milliseconds, work) => {
      let isStopped = false;
      const stop = time.startTimer(milliseconds, () =>
        this.deliver(() => {
          if (!isStopped) work();
        }),
      );
      return () => {
        isStopped = true;
        stop();
      };
    };
    return {
      now: () => time.nowMs,
      sleep: (milliseconds, { signal } = {}) =>
        new Promise((resolve) => {
          if (signal?.aborted) return resolve();
          const end = () => {
            stopTimer();
            signal?.removeEventListener('abort', end);
            resolve();
          };
          const stopTimer = startTimer(milliseconds, end);
          signal?.addEventListener('abort', end);
        }),
      startTimer,
      chance: processChance.createSequence('chance'),
      generateId: () => toUuid(processChance.bytes(16, `id ${draws++}`)),
      generateBytes: (length) => processChance.bytes(length, `bytes ${draws++}`),
      reportError,
    };
  }
}

/** The time of the store, with the error that a process makes when it determines it. */
class SimulatedClock extends Clock {
  constructor(
    private readonly options: Pick<ProcessOptions, 'time' | 'startMs'>,
    private readonly skewMs: number,
  ) {
    super();
  }

  nowMs(): number {
    return Math.floor(this.options.startMs + this.options.time.nowMs + this.skewMs);
  }
}

function toUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
