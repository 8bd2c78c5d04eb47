import { expect, test } from '@jest/globals';
import { type Hold, type Payer, RequestVideo, RequestVideoHandler, SystemClock } from '#application';
import { StoreUnavailableError, UnknownOutcomeError, ZERO_USD } from '#kernel';

const hold: Hold = {
  holdId: 'r',
  payer: 'account-a',
  amount: ZERO_USD,
  availableAfter: ZERO_USD,
  maxSpendable: ZERO_USD,
  expiresAt: 0,
};
const quote = { order: { priceList: { version: 'p' } }, deadlineMs: 1_000 };

/** Asks for a video whose statement ends so. Returns the holds that were released by the time of the answer. */
async function releasedAfter(error: Error): Promise<readonly string[]> {
  const released: string[] = [];
  const release = async ({ holdId }: Hold) => {
    released.push(holdId);
    throw new StoreUnavailableError('away'); // which nobody is told
  };
  const payer = { id: 'account-a', release } as Partial<Payer> as Payer;
  const given = {
    images: { prepareSources: async () => async () => ({ image: undefined }) },
    requests: { save: async () => ({}) },
    secrets: { hashWithOldestKey: () => '' },
    clock: new SystemClock(),
  };
  const videos = {
    run: async () => {
      throw error;
    },
  };
  const paying = { holdForJob: async () => hold };
  const handler = new RequestVideoHandler(
    { quote: async () => quote } as never,
    paying as never,
    given as never,
    videos as never,
  );
  const request = new RequestVideo(payer, { requestId: 'r', caller: undefined, source: 'api' }, {} as never);
  await expect(handler.execute(request)).rejects.toBe(error);
  return released;
}

test.each([
  ['is released where the video was surely not stated', new StoreUnavailableError('away'), ['r']],
  ['stays where the video may have been stated: it ends with it', new UnknownOutcomeError('silent'), []],
])('when the books fail, the hold of a video %s', async (_, error, released) => {
  expect(await releasedAfter(error)).toEqual(released);
});
