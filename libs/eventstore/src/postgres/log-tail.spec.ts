import { expect, test } from '@jest/globals';
import type pg from 'pg';
import { getBatchDelayMs, LogTail, MAX_BATCH_DELAY_MS } from './log-tail.ts';

test('batches longer after a notification about more events, up to a maximum, and briefly after one or two', () => {
  expect([0, 1, 2].map(getBatchDelayMs)).toEqual([0, 5, 10]);
  expect([5, 100, 1_000_000].map(getBatchDelayMs)).toEqual([
    MAX_BATCH_DELAY_MS,
    MAX_BATCH_DELAY_MS,
    MAX_BATCH_DELAY_MS,
  ]);
});

test('does not conclude from a delayed poll that the appends which a later poll observed have ended', async () => {
  const looks: ((seen: object) => void)[] = [];
  const query = () => new Promise((resolve) => looks.push(resolve));
  const tail = new LogTail({ query } as unknown as pg.Pool, () => {});
  const answer = async (look: number, head: string, appending: string[] | null) => {
    while (looks.length <= look) await new Promise(setImmediate);
    looks[look]?.({ rows: [{ head, oldest: '10', next: '20', appending }] }); // transaction 10 never ends
    await new Promise(setImmediate);
  };
  const ends = [tail.readEndPosition(), tail.readEndPosition()];
  await answer(1, '7', ['a transaction that has position 6']);
  await answer(0, '5', ['one that has ended meanwhile']);
  expect(tail.position).toBeLessThan(5n);
  for (const look of [2, 3]) await answer(look, '7', []);
  expect(await Promise.all(ends)).toEqual([5n, 7n]);
  tail.stop();
});
