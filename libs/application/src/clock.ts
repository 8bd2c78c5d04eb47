import type { Instant } from '#domain';

/** Provides the time to use cases. */
export abstract class Clock {
  private readonly nowFormatter = new InstantFormatter();
  private readonly instantFormatter = new InstantFormatter();

  /** Milliseconds since 1970, an integer. */
  abstract nowMs(): number;

  /**
   * Whether this time may be used to end what other processes rely on, such as holds. A clock that contradicts another
   * clock is not reliable.
   */
  isReliable(): boolean {
    return true;
  }

  now(): Instant {
    return this.nowFormatter.format(this.nowMs());
  }

  fromNow(milliseconds: number): Instant {
    return this.toInstant(this.nowMs() + milliseconds);
  }

  /** Converts milliseconds since 1970 to an instant. */
  toInstant(milliseconds: number): Instant {
    return this.instantFormatter.format(milliseconds);
  }
}

/**
 * Formats instants, most of them close to the previous one. The last instant and its second are cached, because
 * formatting a date takes as long as deciding a command.
 */
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
