import { afterEach, beforeEach } from '@jest/globals';
import { FakeClock } from './fake-clock.ts';
import { replaceDelays } from './replace-delays.ts';

/**
 * During each test of the file, lets delays and `performance.now` follow a clock that only the test advances.
 * @returns a function that returns the clock of the current test
 */
export function useFakeTime(): () => FakeClock {
  const realNow = performance.now;
  let clock: FakeClock;
  let restoreDelays: () => void;
  beforeEach(() => {
    clock = new FakeClock('2026-11-20T12:00:00.000Z');
    restoreDelays = replaceDelays(clock.delay);
    performance.now = () => clock.nowMs();
  });
  afterEach(() => {
    performance.now = realNow;
    restoreDelays();
  });
  return () => clock;
}
