import { expect, test } from '@jest/globals';
import { CatchUp } from './catch-up.ts';

/** Two read models that are found at one pair of positions after the other. */
function found(...places: (readonly [bigint, bigint])[]) {
  let look = 0;
  const moving = async () => {
    const [balances, keys] = places[Math.min(look++, places.length - 1)] as readonly bigint[];
    return new Map([
      ['balances', balances ?? 0n],
      ['keys', keys ?? 0n],
    ]);
  };
  return { moving };
}

const asked = async (catchUp: CatchUp) => [await catchUp.over(), await catchUp.over(), await catchUp.over()];

test.each<[string, readonly (readonly [bigint, bigint])[], number, readonly boolean[]]>([
  [
    'each has applied what there was',
    [
      [4n, 9n],
      [10n, 9n],
      [11n, 10n],
    ],
    60_000,
    [false, false, true],
  ],
  [
    'those that still move have',
    [
      [4n, 3n],
      [7n, 3n],
      [10n, 3n],
    ],
    0,
    [false, false, true],
  ],
  ['none moves', [[4n, 3n]], 0, [false, true, true]],
])('a process is waited for until %s', async (_, places, patienceMs, expected) => {
  expect(await asked(new CatchUp(10n, found(...places), ['balances', 'keys'], patienceMs))).toEqual(expected);
});

test('what has been caught up with once is not asked about again', async () => {
  const catchUp = new CatchUp(10n, found([10n, 10n], [2n, 2n]), ['balances', 'keys']);
  expect(await asked(catchUp)).toEqual([true, true, true]);
});
