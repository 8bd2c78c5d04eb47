import { Clock } from '#application';

/** The clock of this host: for tests and benchmarks, whose processes do not share their event store. */
export class SystemClock extends Clock {
  nowMs(): number {
    return Date.now();
  }
}
