import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type pg from 'pg';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../testing/src/replace-delays.ts';
import { ProjectionProgress } from './progress.ts';

const WAIT_MS = 600;

const time = new FakeClock('2026-11-22T12:00:00.000Z');
let restoreDelays: () => void;
beforeAll(() => {
  restoreDelays = replaceDelays(time.delay);
  jest.spyOn(performance, 'now').mockImplementation(() => time.nowMs());
});
afterAll(() => {
  jest.restoreAllMocks();
  restoreDelays();
});

/** Advances the clock until `work` has ended. Returns its result and its duration in milliseconds. */
async function run<T>(work: Promise<T>): Promise<readonly [T, number]> {
  const startedAt = time.nowMs();
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  for (await time.advance(0); !isOver; await time.advance(1));
  return [await work, time.nowMs() - startedAt];
}

/** Polls a database whose checkpoint is at the position that `at` returns. */
function progressOf(at: () => bigint) {
  const rows = () => [{ projection: 'keys', position: String(at()), rebuilt_to: null }];
  return new ProjectionProgress({ query: async () => ({ rows: rows() }) } as unknown as pg.Pool);
}

async function waited(progress: ProjectionProgress, position: bigint): Promise<readonly [boolean, boolean]> {
  const [reached, waitedMs] = await run(progress.waitUntilApplied(['keys'], position, WAIT_MS));
  return [reached, waitedMs >= WAIT_MS];
}

test('concurrent callers share each query, with a minimum interval between queries', async () => {
  let looks = 0;
  const query = async () => ({ rows: [{ projection: 'keys', position: String(++looks), rebuilt_to: null }] });
  const progress = new ProjectionProgress({ query } as unknown as pg.Pool);
  const [, waitedMs] = await run(
    Promise.all(Array.from({ length: 100 }, () => progress.waitUntilApplied(['keys'], 10n, WAIT_MS))),
  );
  expect(looks).toBe(10);
  expect(waitedMs).toBeGreaterThanOrEqual(9 * 3);
});

test('a forced poll ignores earlier results and waits for a query that starts after the call', async () => {
  let at = 5n;
  const queries: (() => void)[] = [];
  const query = () => {
    const answer = { rows: [{ projection: 'keys', position: String(at), rebuilt_to: null }] };
    return new Promise((resolve) => queries.push(() => resolve(answer)));
  };
  const progress = new ProjectionProgress({ query } as unknown as pg.Pool);
  const afresh = () => progress.waitUntilApplied(['keys'], 5n, 0, true);
  const asked = async (n: number) => {
    for (let tries = 0; queries.length < n; tries++) {
      if (tries > 500) throw new Error(`there were ${queries.length} queries instead of ${n}`);
      await time.advance(1);
    }
  };
  const answered = async (n: number) => {
    await asked(n);
    queries[n - 1]?.();
  };
  const first = afresh();
  await asked(1);
  at = 4n; // a lagging standby takes over during the query
  const later = [afresh(), afresh()];
  await answered(1);
  await answered(2);
  expect([await first, ...(await Promise.all(later))]).toEqual([true, false, false]);
  at = 5n;
  const third = progress.waitUntilApplied(['keys'], 5n, WAIT_MS);
  await answered(3);
  expect(await third).toBe(true);
  at = 4n;
  expect(await progress.waitUntilApplied(['keys'], 5n, 0)).toBe(true); // from the cached position
  const fourth = afresh();
  await answered(4);
  expect([await fourth, queries.length]).toEqual([false, 4]);
});

test('after a timeout, waits for a projection are short until it advances', async () => {
  let at = 1n;
  const progress = progressOf(() => at);
  expect(await waited(progress, 2n)).toEqual([false, true]);
  expect(await waited(progress, 2n)).toEqual([false, false]);
  expect(await waited(progress, 1n)).toEqual([true, false]);
  at = 2n;
  expect(await waited(progress, 2n)).toEqual([true, false]);
  expect(await waited(progress, 3n)).toEqual([false, true]);
});
