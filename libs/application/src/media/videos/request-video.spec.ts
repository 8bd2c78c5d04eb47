import { expect, test } from '@jest/globals';
import { type Hold, type Payer, RequestVideo, RequestVideoHandler, SystemClock } from '#application';
import { StoreUnavailableError, UnknownOutcomeError, ZERO_USD } from '#kernel';

const hold: Hold = {
  holdId: 'r',
  payer: 'account-a',
  amount: ZERO_USD,
  availableAfter: ZERO_USD,
  expiresAt: 0,
};
const quote = { order: { priceList: { version: 'p' } }, deadlineMs: 1_000 };

/**
 * Requests a video whose event cannot be appended because of this error. Returns the ids of the holds whose release
 * started before the response.
 */
async function releasedAfter(error: Error): Promise<readonly string[]> {
  const released: string[] = [];
  const release = async ({ holdId }: Hold) => {
    released.push(holdId);
    throw new StoreUnavailableError('away'); // which is not reported
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
  ['is released if the video was certainly not recorded', new StoreUnavailableError('away'), ['r']],
  ['stays open if the video may have been recorded', new UnknownOutcomeError('silent'), []],
])('when the event store fails, the hold of a video %s', async (_, error, released) => {
  expect(await releasedAfter(error)).toEqual(released);
});
