import { expect, test } from '@jest/globals';
import { START_POSITION } from '#kernel';
import type { ProjectionPosition } from './progress.ts';
import { StartupCatchUp } from './startup-catch-up.ts';

const END = 10n;

/** Positions of `balances` and `keys`, and of the new table of `keys` during a rebuild. */
type Places = readonly [balances: bigint, keys: bigint, rebuiltTo?: bigint];

/** Two read models with the given positions in successive polls. */
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
    'each projection has reached the target',
    [
      [4n, 9n],
      [10n, 9n],
      [11n, 10n],
    ],
    60_000,
    [BOTH, 'keys', ''],
  ],
  [
    'each projection that still advances has reached the target',
    [
      [4n, 3n],
      [7n, 3n],
      [10n, 3n],
    ],
    0,
    [BOTH, 'balances', ''],
  ],
  ['no projection advances', [[4n, 3n]], 0, [BOTH, '', '']],
  [
    'a rebuild has filled the new table',
    [
      [10n, 3n, 1n],
      [10n, 3n, 8n],
      [10n, 10n],
    ],
    0,
    ['keys', 'keys', ''],
  ],
  [
    'a repeatedly failing rebuild gets no further than before',
    [
      [10n, 3n, 8n],
      [10n, 3n],
      [10n, 3n, 8n],
    ],
    0,
    ['keys', '', ''],
  ],
  [
    'the first projector has filled the keys, even if no projection advances',
    [[START_POSITION, START_POSITION]],
    0,
    [BOTH, 'keys', 'keys'],
  ],
])('the start waits until %s', async (_, places, patienceMs, expected) => {
  expect(await waits(new StartupCatchUp(END, found(...places), ['balances', 'keys'], patienceMs))).toEqual(expected);
});

test('the start does not wait if there are no events', async () => {
  expect(
    await waits(new StartupCatchUp(START_POSITION, found([START_POSITION, START_POSITION]), ['balances', 'keys'])),
  ).toEqual(['', '', '']);
});

test('the catch-up stays complete after all projections have reached the target once', async () => {
  const catchUp = new StartupCatchUp(END, found([10n, 10n], [2n, 2n]), ['balances', 'keys']);
  expect(await waits(catchUp)).toEqual(['', '', '']);
});

test('the stall timeouts restart after the positions could not be read', async () => {
  let isAway = false;
  const { loadActivePositions: moving } = found([4n, 3n]);
  const progress = { loadActivePositions: () => (isAway ? Promise.reject(new Error('PostgreSQL is down')) : moving()) };
  const catchUp = new StartupCatchUp(END, progress, ['balances', 'keys'], 0);
  await catchUp.findLagging();
  isAway = true;
  await expect(catchUp.findLagging()).rejects.toThrow('down');
  isAway = false;
  expect(await waits(catchUp)).toEqual([BOTH, '', '']);
});
