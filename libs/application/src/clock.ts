import type { Instant } from '#domain';

/** Where use cases get the time from. */
export abstract class Clock {
  /** Milliseconds since 1970. */
  abstract milliseconds(): number;

  now(): Instant {
    return new Date(this.milliseconds()).toISOString();
  }

  in(milliseconds: number): Instant {
    return new Date(this.milliseconds() + milliseconds).toISOString();
  }
}

export class SystemClock extends Clock {
  milliseconds(): number {
    return Date.now();
  }
}
