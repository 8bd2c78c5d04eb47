import { Rejection, type Timers } from '#kernel';
import { createDisconnectError, toUpstreamError } from '../errors.ts';
import type { WaitSignals } from './payer.ts';

/**
 * Delay before the second attempt of a request, in which this process is not busy. Requests that arrive at the same time
 * are then in line, so that the first one does not take the money of all.
 */
const FIRST_RETRY_MS = 100;
/** Checks of whether the process is busy: a timer is later than `MAX_LAG_MS`. */
const CHECK_MS = 25;
const MAX_LAG_MS = 15;
/** Maximum delay before the second attempt in a busy process. */
const MAX_FIRST_RETRY_MS = 1_000;
/** Time between later attempts: other processes release money too. */
const RETRY_MS = 250;

export interface WaitLimits {
  /** Maximum number of requests of one account that wait in this process. */
  readonly maxWaiting: number;
  /** How long a request waits at most. */
  readonly maxWaitMs: number;
}

interface Waiter {
  /** Whether to try again. */
  isWoken: boolean;
  hasDisconnected: boolean;
  /** Ends the current pause. */
  wake: () => void;
}

/** The waiting requests of one account, in the order of their arrival at this process. */
interface Line {
  readonly waiters: Waiter[];
  /** Further requests are expected to arrive at the same time. */
  isGathering: boolean;
  /** Stops the timer of the next attempt of all waiters. */
  stopTimer(): void;
}

/**
 * Lets requests wait for a hold while running requests of the same account hold or need the money. All waiting requests
 * of an account try again at the same time, in the order of their arrival, so the store decides them together. A
 * request that does not fit does not delay later ones.
 */
export class HoldQueue {
  private readonly lines = new Map<string, Line>();

  constructor(
    private readonly limits: WaitLimits,
    private readonly timers: Timers,
  ) {}

  /**
   * Runs `attempt` until it is not rejected for now.
   * @param attempt gets the number of other requests of the account that wait; undefined if none waits and this request
   *   has not waited, but may
   * @throws the last rejection after the maximum time, or if too many requests wait; any other error of `attempt`;
   *   UpstreamError if `signals` end the wait
   */
  async run<T>(accountId: string, attempt: (waiting?: number) => Promise<T>, signals: WaitSignals): Promise<T> {
    const { maxWaiting } = this.limits;
    const getLength = () => this.lines.get(accountId)?.waiters.length;
    const length = getLength();
    if (length === undefined || length >= maxWaiting) {
      try {
        return await attempt(maxWaiting === 0 ? 0 : length);
      } catch (error) {
        if (!isTemporary(error) || (getLength() ?? 0) >= maxWaiting) throw error;
      }
    }
    const waiter: Waiter = { isWoken: false, hasDisconnected: false, wake: () => {} };
    const line = this.join(accountId, waiter);
    try {
      return await this.waitInLine(waiter, line, attempt, signals);
    } finally {
      line.waiters.splice(line.waiters.indexOf(waiter), 1);
      if (line.waiters.length === 0) {
        line.stopTimer();
        this.lines.delete(accountId);
      }
    }
  }

  /** Lets the waiting requests of an account try again, because money of the account was released. */
  wake(accountId: string): void {
    const line = this.lines.get(accountId);
    if (line) wakeAll(line);
  }

  private join(accountId: string, waiter: Waiter): Line {
    const existing = this.lines.get(accountId);
    if (existing) {
      existing.waiters.push(waiter);
      if (!existing.isGathering) this.scheduleAttempt(existing, CHECK_MS);
      return existing;
    }
    const line: Line = { waiters: [waiter], isGathering: true, stopTimer: () => {} };
    this.lines.set(accountId, line);
    void this.waitUntilIdle().then(() => {
      line.isGathering = false;
      if (line.waiters.length > 0) this.retry(line);
    });
    return line;
  }

  private async waitInLine<T>(
    waiter: Waiter,
    { waiters }: Line,
    attempt: (waiting: number) => Promise<T>,
    { signal, disconnected }: WaitSignals,
  ): Promise<T> {
    void disconnected?.then(() => {
      waiter.hasDisconnected = true;
      waiter.wake();
    });
    const { maxWaitMs } = this.limits;
    const { timers } = this;
    const deadline = timers.now() + maxWaitMs;
    for (;;) {
      await this.pause(waiter, Math.max(deadline - timers.now(), 0), signal);
      const hasTimedOut = timers.now() >= deadline;
      try {
        return await attempt(waiters.length - 1);
      } catch (error) {
        if (!isTemporary(error)) throw error;
        if (hasTimedOut) throw toWaitedError(error, maxWaitMs);
      }
    }
  }

  private retry(line: Line): void {
    wakeAll(line);
    this.scheduleAttempt(line, RETRY_MS);
  }

  /** Schedules the next attempt of all waiters: other processes release money too. Replaces the one before. */
  private scheduleAttempt(line: Line, milliseconds: number): void {
    line.stopTimer();
    line.stopTimer = this.timers.startTimer(milliseconds, () => this.retry(line));
  }

  /** Resolves when the process was not busy for a while. */
  private async waitUntilIdle(): Promise<void> {
    const { timers } = this;
    const deadline = timers.now() + MAX_FIRST_RETRY_MS;
    for (let idleMs = 0; idleMs < FIRST_RETRY_MS && timers.now() < deadline; ) {
      const startedAt = timers.now();
      await timers.sleep(CHECK_MS);
      idleMs = timers.now() - startedAt > CHECK_MS + MAX_LAG_MS ? 0 : idleMs + CHECK_MS;
    }
  }

  /**
   * Resolves after the time, or once the waiter is woken.
   * @throws UpstreamError if the signal has aborted, or the client has disconnected
   */
  private async pause(waiter: Waiter, milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    if (!waiter.isWoken && !waiter.hasDisconnected && !signal?.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiter.wake = () => resolve();
      const stopTimer = this.timers.startTimer(milliseconds, waiter.wake);
      signal?.addEventListener('abort', waiter.wake);
      await promise;
      stopTimer();
      signal?.removeEventListener('abort', waiter.wake);
    }
    waiter.isWoken = false;
    if (signal?.aborted) throw toUpstreamError(signal.reason);
    if (waiter.hasDisconnected) throw createDisconnectError();
  }
}

function wakeAll({ waiters }: Line): void {
  for (const waiter of waiters) {
    waiter.isWoken = true;
    waiter.wake();
  }
}

function isTemporary(error: unknown): error is Rejection {
  return error instanceof Rejection && error.isTemporary;
}

function toWaitedError(error: Rejection, waitedMs: number): Rejection {
  return error.withMessage(`${error.message}, also after ${waitedMs / 1_000} s of waiting for running requests`, {});
}
