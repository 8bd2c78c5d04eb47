import { expect, test } from '@jest/globals';
import { type RateLimiter, TooManyRequestsError } from '#application';
import { StoreUnavailableError } from '#kernel';
import { ReadModelIncompleteError, ReadModelLaggingError, UnauthorizedError } from '../errors/errors.ts';
import { CredentialLookups } from './credential-lookups.ts';

const IP = '192.0.2.1';

/** Returns lookups that allow `most` invalid credentials in total. */
function limitsOf(most: number, mostMs?: number) {
  let counted = 0;
  const limits = {
    count: async () => {
      if (++counted > most) throw new TooManyRequestsError('Too many', 1);
    },
    isExceeded: () => counted > most,
  };
  return new CredentialLookups(limits as Pick<RateLimiter, 'count' | 'isExceeded'> as RateLimiter, mostMs);
}

const failing = (error: Error) => () => Promise.reject(error);

test.each([new ReadModelLaggingError(), new ReadModelIncompleteError()])(
  'counts a credential that may be valid (%s) as an invalid one, but does not replace its error',
  async (error) => {
    const lookUps = limitsOf(1);
    for (let n = 0; n < 3; n++) await expect(lookUps.run(IP, false, failing(error))).rejects.toBe(error);
    await expect(lookUps.run(IP, false, failing(new UnauthorizedError('wrong')))).rejects.toThrow('Too many');
  },
);

test('waits only briefly for the read models after many invalid credentials, unless the owner is cached', async () => {
  const lookUps = limitsOf(1);
  const waits: number[] = [];
  const look = async (withinMs: number) => {
    waits.push(withinMs);
    throw new ReadModelLaggingError();
  };
  for (let n = 0; n < 3; n++) await expect(lookUps.run(IP, false, look)).rejects.toThrow(ReadModelLaggingError);
  await lookUps.run(IP, true, async (withinMs) => void waits.push(withinMs)); // cached
  expect(waits).toEqual([2_000, 2_000, 200, 2_000]);
});

test('rejects a lookup that waited too long, and does not run it later', async () => {
  const lookUps = limitsOf(0, 20);
  await expect(lookUps.run(IP, false, failing(new UnauthorizedError('wrong')))).rejects.toThrow('Too many');
  const looked: string[] = [];
  const frozen = Promise.withResolvers<void>();
  const look = (name: string, answer: Promise<void>) =>
    lookUps.run(IP, false, () => {
      looked.push(name);
      return answer;
    });
  const waiting = [look('first', frozen.promise), look('behind it', Promise.resolve())];
  await Promise.all(waiting.map((each) => expect(each).rejects.toThrow(StoreUnavailableError)));
  frozen.resolve();
  await look('later', Promise.resolve());
  expect(looked).toEqual(['first', 'later']);
});
