import type { Instant } from '#domain';

/** Where use cases get the time from. */
export abstract class Clock {
  private readonly nowFormatter = new InstantFormatter();
  private readonly instantFormatter = new InstantFormatter();

  /** Milliseconds since 1970: a whole number. */
  abstract nowMs(): number;

  /** Whether what others rely on may be ended by it. A clock that another contradicts may be wrong. */
  isReliable(): boolean {
    return true;
  }

  now(): Instant {
    return this.nowFormatter.format(this.nowMs());
  }

  fromNow(milliseconds: number): Instant {
    return this.toInstant(this.nowMs() + milliseconds);
  }

  /** The instant so many milliseconds after 1970. */
  toInstant(milliseconds: number): Instant {
    return this.instantFormatter.format(milliseconds);
  }
}

/** This machine's clock: for tests, and for what is alone with its store. */
export class SystemClock extends Clock {
  nowMs(): number {
    return Date.now();
  }
}

/** Prints instants that mostly follow each other: each is printed once, and its second as well, since a date takes as long as a decision. */
class InstantFormatter {
  private second = Number.NaN;
  private prefix = '';
  private last = Number.NaN;
  private lastText = '';

  format(milliseconds: number): Instant {
    if (milliseconds === this.last) return this.lastText;
    const second = Math.floor(milliseconds / 1000);
    if (second !== this.second) {
      this.second = second;
      this.prefix = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    }
    this.last = milliseconds;
    this.lastText = `${this.prefix}${String(Math.floor(milliseconds) - second * 1000).padStart(3, '0')}Z`;
    return this.lastText;
  }
}
