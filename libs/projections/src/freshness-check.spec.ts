import { expect, test } from '@jest/globals';
import type pg from 'pg';
import { StoreUnavailableError } from '#kernel';
import { FreshnessCheck } from './freshness-check.ts';
import { ProjectionProgress } from './progress.ts';

/**
 * A store whose queries of the last position resolve when the test decides; each returns the number of queries so far.
 */
function store() {
  const looks: (() => void)[] = [];
  const end = () => {
    const { promise, resolve } = Promise.withResolvers<bigint>();
    const position = BigInt(looks.length + 1);
    looks.push(() => resolve(position));
    return promise;
  };
  return { end, looks };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('concurrent calls share one query of the last position, which starts after all of them', async () => {
  const { end, looks } = store();
  const asked: bigint[] = [];
  const reached = async (_: readonly string[], position: bigint) => {
    asked.push(position);
    return true;
  };
  const upToDate = new FreshnessCheck({ readLastPosition: end }, { waitUntilApplied: reached });
  const first = upToDate.waitUntilCurrent(['keys'], 0);
  await turn();
  const later = Array.from({ length: 50 }, () => upToDate.waitUntilCurrent(['keys'], 0));
  await turn();
  expect(looks).toHaveLength(1);
  looks[0]?.();
  await first;
  await turn();
  expect(looks).toHaveLength(2);
  looks[1]?.();
  await Promise.all(later);
  expect(asked).toEqual([1n, ...later.map(() => 2n)]);
});

test('a failed query rejects its call and not the next one', async () => {
  let looks = 0;
  const end = () => (looks++ === 0 ? Promise.reject(new Error('away')) : Promise.resolve(5n));
  const upToDate = new FreshnessCheck({ readLastPosition: end }, { waitUntilApplied: async () => true });
  await expect(upToDate.waitUntilCurrent(['keys'], 0)).rejects.toThrow('away');
  expect(await upToDate.waitUntilCurrent(['keys'], 0)).toBe(true);
});

test('a read model that has lost its checkpoint is not current', async () => {
  let rows: readonly object[] = [{ projection: 'keys', position: '10', rebuilt_to: null }];
  const progress = new ProjectionProgress({ query: async () => ({ rows }) } as unknown as pg.Pool);
  const upToDate = new FreshnessCheck({ readLastPosition: async () => 10n }, progress);
  expect(await upToDate.waitUntilCurrent(['keys'], 0)).toBe(true);
  rows = []; // PostgreSQL was emptied, and nothing was appended since then
  expect(await upToDate.waitUntilCurrent(['keys'], 0)).toBe(false);
});

test.each([
  ['the event store', () => new Promise<bigint>(() => {}), async () => true],
  ['PostgreSQL', async () => 1n, () => new Promise<boolean>(() => {})],
])('the check rejects with StoreUnavailableError if %s does not respond in time', async (_, end, reached) => {
  const upToDate = new FreshnessCheck({ readLastPosition: end }, { waitUntilApplied: reached }, 20);
  const asked = [upToDate.waitUntilCurrent(['keys'], 2_000), upToDate.waitUntilCurrent(['keys'], 2_000)];
  await Promise.all(asked.map((each) => expect(each).rejects.toThrow(StoreUnavailableError)));
});
