import { expect, test } from '@jest/globals';
import { PollRateLimiter } from './poll-rate-limiter.ts';

const SECOND = 1_000;

test('a rate limiter allows a given number of routine polls per second, and any urgent poll', () => {
  let now = 0;
  const pace = new PollRateLimiter(10, { nowMs: () => now });
  const allowed = (times: number) => Array.from({ length: times }, () => pace.tryAcquire(false)).filter(Boolean).length;
  expect(allowed(50)).toBe(10);
  now += SECOND / 2;
  expect(allowed(50)).toBe(5);
  now += 60 * SECOND;
  expect(allowed(50)).toBe(10); // unused polls do not accumulate
  expect(pace.tryAcquire(true)).toBe(true);
});

test('a rate limiter allows no polls during a back-off, not even urgent ones', () => {
  let now = 0;
  const pace = new PollRateLimiter(10, { nowMs: () => now });
  pace.backOff();
  expect([pace.tryAcquire(false), pace.tryAcquire(true)]).toEqual([false, false]);
  now += 5 * SECOND;
  expect(pace.tryAcquire(false)).toBe(true);
});
