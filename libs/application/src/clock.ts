import type { Instant } from '#domain';

/** Where use cases get the time from. */
export abstract class Clock {
  private readonly present = new Printer();
  private readonly future = new Printer();

  /** Milliseconds since 1970: a whole number. */
  abstract milliseconds(): number;

  /** Whether what others rely on may be ended by it. A clock that another contradicts may be wrong. */
  isSure(): boolean {
    return true;
  }

  now(): Instant {
    return this.present.print(this.milliseconds());
  }

  in(milliseconds: number): Instant {
    return this.at(this.milliseconds() + milliseconds);
  }

  /** The instant so many milliseconds after 1970. */
  at(milliseconds: number): Instant {
    return this.future.print(milliseconds);
  }
}

/** This machine's clock: for tests, and for what is alone with its store. */
export class SystemClock extends Clock {
  milliseconds(): number {
    return Date.now();
  }
}

/** Prints instants that mostly follow each other: each is printed once, and its second as well, since a date takes as long as a decision. */
class Printer {
  private second = Number.NaN;
  private beginning = '';
  private last = Number.NaN;
  private printed = '';

  print(milliseconds: number): Instant {
    if (milliseconds === this.last) return this.printed;
    const second = Math.floor(milliseconds / 1000);
    if (second !== this.second) {
      this.second = second;
      this.beginning = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    }
    this.last = milliseconds;
    this.printed = `${this.beginning}${String(Math.floor(milliseconds) - second * 1000).padStart(3, '0')}Z`;
    return this.printed;
  }
}
