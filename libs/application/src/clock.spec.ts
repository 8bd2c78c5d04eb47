import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Clock } from '#application';

class HandClock extends Clock {
  time = 0;
  nowMs(): number {
    return this.time;
  }
}

test('formats instants like Date.toISOString, in any order', () => {
  const clock = new HandClock();
  const near = fc.double({ min: 1_795_000_000_000, max: 1_795_000_003_000, noNaN: true });
  const far = fc.integer({ min: -1e14, max: 1e14 });
  fc.assert(
    fc.property(fc.oneof(near, far), fc.nat({ max: 2_000 }), (time, wait) => {
      clock.time = time;
      expect(clock.now()).toBe(new Date(Math.floor(time)).toISOString());
      expect(clock.fromNow(wait)).toBe(new Date(Math.floor(time + wait)).toISOString());
      expect(clock.toInstant(time)).toBe(clock.now());
    }),
  );
});
