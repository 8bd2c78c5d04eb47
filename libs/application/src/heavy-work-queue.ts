/** Spreads work that cannot be interrupted over time, so that the event loop serves other requests in between. */
import { channel } from 'node:diagnostics_channel';
import { LRUCache } from 'lru-cache';
import { limitEntries, type Timers } from '#kernel';
import { OwnerQueue } from './owner-queue.ts';

/** After each step and each body, other requests have the event loop for at least this many times as long as it takes. */
const MIN_PAUSE_FACTOR = 3;
/**
 * The factor grows with the duration of a step: a request that meets a step of 40 ms is delayed by four times as much as
 * by one of 10 ms, so fewer requests may meet it. From 15 ms on it exceeds the minimum.
 */
const PAUSE_FACTOR_PER_MS = 1 / 5;
/** A step may take long because the host was suspended or overloaded. Its pause must not stop the queue. */
const MAX_PAUSE_MS = 500;
/**
 * An owner whose step takes longer than this waits before its next body, for a multiple of the excess: then long steps of
 * one owner take a hundredth of the time or less. Others do not wait for it. Bodies of long texts have no such steps.
 */
const MAX_TYPICAL_STEP_MS = 15;
const REST_FACTOR = 200;
const MAX_REST_MS = 10_000;
/** For more owners than this, the rests that started first are forgotten. */
const MAX_RESTING_OWNERS = 10_000;
/** What else a body takes, before and after this work: it is read, scanned, priced, and sent to a provider. */
const OTHER_MS_PER_MIB = 8;
const BYTES_PER_MIB = 1024 * 1024;
/** Publishes the duration of each step, for `npm run prove:attacks -- large-bodies`. */
const stepChannel = channel('countinghouse:heavy-work');

/** JSON of more bytes than this is parsed in turns. */
export const MAX_SMALL_JSON_BYTES = 256 * 1024;

/** One step of the work. Each gets the result of the step before it. */
export type WorkStep = (input: never) => unknown;

export class HeavyWorkQueue {
  private readonly owners = new OwnerQueue();
  /** By owner: the time until which it waits with its next body. */
  private readonly restEnds = new LRUCache<string, number>(limitEntries(MAX_RESTING_OWNERS));
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly timers: Pick<Timers, 'now' | 'sleep'>) {}

  /**
   * Runs the steps one after the other, when their time comes. Each owner has one body in the queue at a time, and
   * there is a pause after each step and after each body. So another owner waits for one body of each owner at most,
   * and any other request for one step in total. An owner with long steps waits longer between its bodies.
   * @param bytes size of the body, which determines the pause
   * @returns the result of the last step
   * @throws what a step throws
   */
  run(owner: string, bytes: number, steps: readonly WorkStep[]): Promise<unknown> {
    return this.owners.run(owner, async () => {
      const restMs = this.getRestEnd(owner) - this.timers.now();
      if (restMs > 0) await this.timers.sleep(restMs);
      return this.runNext(owner, bytes, steps);
    });
  }

  private getRestEnd(owner: string): number {
    return Math.max(this.restEnds.get(owner) ?? 0, this.timers.now());
  }

  private runNext(owner: string, bytes: number, steps: readonly WorkStep[]): Promise<unknown> {
    let finalPauseMs = (bytes / BYTES_PER_MIB) * OTHER_MS_PER_MIB * MIN_PAUSE_FACTOR;
    let pauseMs = 0;
    const runStep = (step: WorkStep, input: unknown): unknown => {
      const startedAt = this.timers.now();
      try {
        return step(input as never);
      } finally {
        const stepMs = this.timers.now() - startedAt;
        stepChannel.publish({ elapsedMs: stepMs });
        pauseMs = Math.min(stepMs * Math.max(MIN_PAUSE_FACTOR, stepMs * PAUSE_FACTOR_PER_MS), MAX_PAUSE_MS);
        finalPauseMs += pauseMs;
        const restMs = Math.min((stepMs - MAX_TYPICAL_STEP_MS) * REST_FACTOR, MAX_REST_MS);
        if (restMs > 0) this.restEnds.set(owner, this.getRestEnd(owner) + restMs);
      }
    };
    const result = this.last.then(async () => {
      let value: unknown;
      for (const step of steps) {
        value = runStep(step, value);
        await this.timers.sleep(pauseMs);
      }
      return value;
    });
    this.last = result.catch(() => {}).then(() => this.timers.sleep(finalPauseMs)); // the caller gets its error
    return result;
  }
}
