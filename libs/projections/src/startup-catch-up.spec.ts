import { expect, test } from '@jest/globals';
import { START_POSITION } from '#kernel';
import type { ProjectionPosition } from './progress.ts';
import { StartupCatchUp } from './startup-catch-up.ts';

const END = 10n;

/** Where `balances` and `keys` are, and how far the new table of `keys` is. */
type Places = readonly [balances: bigint, keys: bigint, rebuiltTo?: bigint];

/** Two read models that are found at one pair of places after the other. */
function found(...places: readonly Places[]) {
  let look = 0;
  const moving = async () => {
    const [balances, keys, rebuiltTo] = places[Math.min(look++, places.length - 1)] as Places;
    return new Map<string, ProjectionPosition>([
      ['balances', { position: balances, rebuiltTo: undefined }],
      ['keys', { position: keys, rebuiltTo }],
    ]);
  };
  return { loadActivePositions: moving };
}

const waits = async (catchUp: StartupCatchUp) => {
  const behind = [await catchUp.findLagging(), await catchUp.findLagging(), await catchUp.findLagging()];
  return behind.map((each) => [...each.keys()].join());
};

const BOTH = 'balances,keys';

test.each<[string, readonly Places[], number, readonly string[]]>([
  [
    'each has applied what there was',
    [
      [4n, 9n],
      [10n, 9n],
      [11n, 10n],
    ],
    60_000,
    [BOTH, 'keys', ''],
  ],
  [
    'those that still move have',
    [
      [4n, 3n],
      [7n, 3n],
      [10n, 3n],
    ],
    0,
    [BOTH, 'balances', ''],
  ],
  ['none moves', [[4n, 3n]], 0, [BOTH, '', '']],
  [
    'a new table is filled beside the one that stands',
    [
      [10n, 3n, 1n],
      [10n, 3n, 8n],
      [10n, 10n],
    ],
    0,
    ['keys', 'keys', ''],
  ],
  [
    'a rebuild that fails again and again is further than it ever was no more',
    [
      [10n, 3n, 8n],
      [10n, 3n],
      [10n, 3n, 8n],
    ],
    0,
    ['keys', '', ''],
  ],
  ['a projector has begun, where none ever was', [[START_POSITION, START_POSITION]], 0, [BOTH, 'keys', 'keys']],
])('a process is waited for until %s', async (_, places, patienceMs, expected) => {
  expect(await waits(new StartupCatchUp(END, found(...places), ['balances', 'keys'], patienceMs))).toEqual(expected);
});

test('where nothing was ever committed, nothing is waited for', async () => {
  expect(
    await waits(new StartupCatchUp(START_POSITION, found([START_POSITION, START_POSITION]), ['balances', 'keys'])),
  ).toEqual(['', '', '']);
});

test('what has been caught up with once is not asked about again', async () => {
  const catchUp = new StartupCatchUp(END, found([10n, 10n], [2n, 2n]), ['balances', 'keys']);
  expect(await waits(catchUp)).toEqual(['', '', '']);
});

test('while it is not known where they are, their time does not pass', async () => {
  let isAway = false;
  const { loadActivePositions: moving } = found([4n, 3n]);
  const progress = { loadActivePositions: () => (isAway ? Promise.reject(new Error('PostgreSQL is away')) : moving()) };
  const catchUp = new StartupCatchUp(END, progress, ['balances', 'keys'], 0);
  await catchUp.findLagging();
  isAway = true;
  await expect(catchUp.findLagging()).rejects.toThrow('away');
  isAway = false;
  expect(await waits(catchUp)).toEqual([BOTH, '', '']);
});
