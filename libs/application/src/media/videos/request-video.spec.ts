import { expect, test } from '@jest/globals';
import {
  BillingEngine,
  EndpointHealth,
  type Hold,
  type Payer,
  RequestVideo,
  RequestVideoHandler,
  UpstreamError,
} from '#application';
import { StoreUnavailableError, UnknownOutcomeError, ZERO_USD } from '#kernel';
import { SystemClock } from '#testing';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import type { HoldRequest } from '../../billing/payer.ts';

const hold: Hold = {
  holdId: 'r',
  payer: 'account-a',
  amount: ZERO_USD,
  availableAfter: ZERO_USD,
  expiresAt: 0,
};
const quote = { order: { priceList: { version: 'p' } }, deadlineMs: 1_000 };
const connection = { disconnected: new Promise<void>(() => {}), storesResponse: false };
const images = { prepareSources: async () => async () => ({ image: undefined }) };

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
    images,
    requests: { save: async () => ({}) },
    secrets: { hashWithOldestKey: () => '' },
    clock: new SystemClock(),
    runtime: createTestRuntime(),
  };
  const videos = {
    run: async () => {
      throw error;
    },
  };
  const paying = { holdForJob: async () => hold };
  const quoter = { quote: async () => quote };
  const handler = new RequestVideoHandler({ ...given, quoter, billing: paying, videos } as never);
  const params = { requestId: 'r', caller: undefined, source: 'api', connection };
  const request = new RequestVideo(payer, params, {} as never);
  await expect(handler.execute(request)).rejects.toBe(error);
  return released;
}

test.each([
  ['is released if the video was certainly not recorded', new StoreUnavailableError('away'), ['r']],
  ['stays open if the video may have been recorded', new UnknownOutcomeError('silent'), []],
])('when the event store fails, the hold of a video %s', async (_, error, released) => {
  expect(await releasedAfter(error)).toEqual(released);
});

/** A request for a video that waits for money until `signal` aborts or the client has disconnected. */
function waitForMoney(storesResponse: boolean) {
  const waiting = Promise.withResolvers<HoldRequest>();
  const payer = {
    hold: (request: HoldRequest) => {
      waiting.resolve(request);
      return new Promise((_, reject) => {
        request.signal?.addEventListener('abort', () => reject(request.signal?.reason));
        void request.disconnected?.then(() => reject(new UpstreamError('client_disconnected', 'gone')));
      });
    },
  } as Partial<Payer> as Payer;
  const limits = { totalTimeoutMs: 600_000, drainTimeoutMs: 0, heldInFullTokens: 0 };
  const billing = new BillingEngine(new EndpointHealth(new SystemClock()), limits, createTestRuntime());
  const { promise: disconnected, resolve: disconnect } = Promise.withResolvers<void>();
  const quoter = { quote: async () => quote };
  const handler = new RequestVideoHandler({ quoter, billing, images } as never);
  const params = { requestId: 'r', caller: undefined, source: 'api', connection: { disconnected, storesResponse } };
  const outcome = handler.execute(new RequestVideo(payer, params, {} as never)).then(
    () => 'requested',
    (error) => error.code,
  );
  return { billing, disconnect, outcome, waiting: waiting.promise };
}

test('a video is not requested if its client disconnects while the request waits for money', async () => {
  const { disconnect, outcome, waiting } = waitForMoney(false);
  await waiting;
  disconnect();
  expect(await outcome).toBe('client_disconnected');
});

test('a video whose response is stored waits for money without its client', async () => {
  const { billing, waiting } = waitForMoney(true);
  expect((await waiting).disconnected).toBeUndefined();
  await billing.drain(0);
});

test('a shutdown waits for a video that waits for money, and ends the wait after the time for running requests', async () => {
  const { billing, outcome, waiting } = waitForMoney(false);
  await waiting;
  await billing.drain(0);
  expect(await outcome).toBe('shutdown');
});
