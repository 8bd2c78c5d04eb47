import { expect, test } from '@jest/globals';
import { money, Rejection, StoreUnavailableError, ZERO_USD } from '#kernel';
import { createTestRuntime } from '#testing';
import { type IdempotencyDependencies, IdempotencyService } from './idempotency.ts';
import type { Hold, Payer } from './payer.ts';

const request = {
  payer: 'account-a',
  key: 'k',
  source: 'Idempotency-Key',
  fingerprint: 'POST',
  requestId: 'r',
  assertCredentialValid: async () => {},
} as const;
const hold: Hold = {
  holdId: 'r',
  payer: 'account-a',
  amount: money.parseUsd('1'),
  availableAfter: ZERO_USD,
  expiresAt: 0,
};

/** Claims a key while the event store has no events of the payer, and nothing can be stored. */
async function claimForUnknownPayer(payer: Partial<Payer>): Promise<Payer> {
  const dependencies = { events: { readHead: async () => undefined }, runtime: createTestRuntime() };
  const service = new IdempotencyService(dependencies as unknown as IdempotencyDependencies);
  const claimed = await service.claim(request, payer as Payer);
  if (!('payer' in claimed)) throw new Error('the request is not to be served');
  return claimed.payer;
}

test('a request of an unknown payer is rejected as its hold is', async () => {
  const rejection = new Rejection('account_not_found', 'unknown');
  const payer = await claimForUnknownPayer({ hold: () => Promise.reject(rejection) });
  await expect(payer.hold({} as never)).rejects.toBe(rejection);
});

test('a request with a key whose payer appears before its hold is not served, and pays nothing', async () => {
  const released: string[] = [];
  const payer = await claimForUnknownPayer({
    hold: async () => hold,
    release: async ({ holdId }) => void released.push(holdId),
  });
  await expect(payer.hold({} as never)).rejects.toThrow(StoreUnavailableError);
  expect(released).toEqual(['r']);
});
