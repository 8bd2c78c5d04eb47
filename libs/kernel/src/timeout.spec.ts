import { expect, test } from '@jest/globals';
import { nodeTimers } from '#runtime';
import { withTimeout } from './timeout.ts';

const fail = (): never => {
  throw new Error('late');
};

test('a promise that is settled in time is the result, and no timer is left', async () => {
  const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const timers = countTimers();
  expect(await withTimeout(nodeTimers, 60_000, Promise.resolve(1), fail)).toBe(1);
  await expect(withTimeout(nodeTimers, 60_000, Promise.reject(new Error('failed')), fail)).rejects.toThrow('failed');
  expect(countTimers()).toBe(timers);
});

test('a later promise is replaced by what the callback returns or throws, and ignored when it is settled', async () => {
  const { promise, reject } = Promise.withResolvers<number>();
  const [returned, thrown] = [
    withTimeout(nodeTimers, 1, promise, () => 'late'),
    withTimeout(nodeTimers, 1, promise, fail),
  ];
  await expect(thrown).rejects.toThrow('late');
  reject(new Error('ignored'));
  expect(await returned).toBe('late');
});
