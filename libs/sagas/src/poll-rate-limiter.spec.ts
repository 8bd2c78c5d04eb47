import { expect, test } from '@jest/globals';
import { PollRateLimiter } from './poll-rate-limiter.ts';

const SECOND = 1_000;

test('a vendor is asked so many times a second, and what is too much is left out', () => {
  let now = 0;
  const pace = new PollRateLimiter(10, { nowMs: () => now });
  const allowed = (times: number) => Array.from({ length: times }, () => pace.tryAcquire(false)).filter(Boolean).length;
  expect(allowed(50)).toBe(10);
  now += SECOND / 2;
  expect(allowed(50)).toBe(5);
  now += 60 * SECOND;
  expect(allowed(50)).toBe(10); // what was not asked is not made up for
  expect(pace.tryAcquire(true)).toBe(true);
});

test('one that cannot be reached is left alone for a while', () => {
  let now = 0;
  const pace = new PollRateLimiter(10, { nowMs: () => now });
  pace.backOff();
  expect([pace.tryAcquire(false), pace.tryAcquire(true)]).toEqual([false, false]);
  now += 5 * SECOND;
  expect(pace.tryAcquire(false)).toBe(true);
});
