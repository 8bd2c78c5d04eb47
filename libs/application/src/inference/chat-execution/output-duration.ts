import type { Timers } from '#kernel';

/** The speed of a stream is known once its output has lasted this long. */
export const MIN_SPEED_MS = 1_000;

/** Measures for how long the output of a stream has arrived. */
export class OutputDuration {
  private startedAtMs: number | undefined;

  constructor(private readonly timers: Pick<Timers, 'now'>) {}

  /**
   * Returns the milliseconds since output was first seen, at most the duration of the output, so that a speed that is
   * calculated from it is not too low.
   * @param output what has arrived until now, in any unit
   */
  measure(output: number): number {
    if (output === 0) return 0;
    const now = this.timers.now();
    this.startedAtMs ??= now;
    return now - this.startedAtMs;
  }
}
