import { expect, test } from '@jest/globals';
import { ReadThrottle } from './read-throttle.ts';

const MIB = 1024 * 1024;

test('a burst is read at once, and all readers together read 32 MiB per second after it', async () => {
  const throttle = new ReadThrottle();
  expect(throttle.count(MIB / 2)).toBeUndefined();
  const startedAt = performance.now();
  const read = async () => {
    for (let i = 0; i < 10; i++) await throttle.count(MIB / 4);
  };
  await Promise.all([read(), read()]);
  // 4.5 MiB beyond the burst
  expect(performance.now() - startedAt).toBeGreaterThan(110);
});
