import { expect, test } from '@jest/globals';
import { type AbuseLimits, TooManyRequests } from '#application';
import { BooksBehind, BooksIncomplete, Unauthorized } from './errors.ts';
import { LookUps } from './look-ups.ts';

const IP = '192.0.2.1';

/** Limits of so many wrong credentials of an address. */
function limitsOf(most: number) {
  let counted = 0;
  const limits = {
    count: async () => {
      if (++counted > most) throw new TooManyRequests('Too many', 1);
    },
    isOver: () => counted > most,
  };
  return new LookUps(limits as Pick<AbuseLimits, 'count' | 'isOver'> as AbuseLimits);
}

const failing = (error: Error) => () => Promise.reject(error);

test.each([new BooksBehind(), new BooksIncomplete()])(
  'a credential that may be good (%s) counts as a wrong one, and is never said to be one too many',
  async (error) => {
    const lookUps = limitsOf(1);
    for (let n = 0; n < 3; n++) await expect(lookUps.make(IP, false, failing(error))).rejects.toBe(error);
    await expect(lookUps.make(IP, false, failing(new Unauthorized('wrong')))).rejects.toThrow('Too many');
  },
);

test('only who has shown few wrong ones has the read models waited for', async () => {
  const lookUps = limitsOf(1);
  const patience: boolean[] = [];
  const look = async (patient: boolean) => {
    patience.push(patient);
    throw new BooksBehind();
  };
  for (let n = 0; n < 3; n++) await expect(lookUps.make(IP, false, look)).rejects.toThrow(BooksBehind);
  await lookUps.make(IP, true, async (patient) => void patience.push(patient)); // it is known here
  expect(patience).toEqual([true, true, false, true]);
});
