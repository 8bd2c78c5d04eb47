import { expect, test } from '@jest/globals';
import { ZERO_USD } from '#kernel';
import { RateLimiter, type RateLimitKey, TooManyRequestsError } from '../rate-limiter.ts';
import { FreeModelLimits } from './free-model-limits.ts';
import type { Payer } from './payer.ts';

class Counts extends RateLimiter {
  readonly counted: string[] = [];

  constructor(private readonly refused?: RateLimitKey) {
    super();
  }

  async count(counted: RateLimitKey, whose = ''): Promise<void> {
    if (counted === this.refused) throw new TooManyRequestsError('too many', 1);
    this.counted.push(`${counted}: ${whose}`);
  }

  isExceeded(): boolean {
    return false;
  }
}

async function take(limits: RateLimiter, free: boolean, isFallbackFree = false): Promise<unknown> {
  const hold = { holdId: 'h', payer: 'p', amount: ZERO_USD, expiresAt: 0 };
  const payer = { id: 'account', hold: async () => hold } as unknown as Payer;
  const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free } as const;
  const fallbacks = [{ ...query, free: isFallbackFree }];
  const request = {
    holdId: 'h',
    query,
    fallbacks,
    minAmount: ZERO_USD,
    maxAmount: ZERO_USD,
    priceList: 'p',
    lifetimeMs: 1,
  };
  return new FreeModelLimits(limits).wrapPayer(payer, () => '192.0.2.1').hold(request);
}

test('counts a free request by account and by address, but not a paid request', async () => {
  const limits = new Counts();
  await take(limits, false);
  expect(limits.counted).toEqual([]);
  await take(limits, true);
  expect(limits.counted).toEqual([
    'free requests of an account in a minute: account',
    'free requests of an account in a day: account',
    'free requests of an address in a day: 192.0.2.1',
  ]);
});

test('counts a request that a free model may serve if another one fails', async () => {
  const limits = new Counts();
  await take(limits, false, true);
  expect(limits.counted).toHaveLength(3);
});

test('does not count a request per day if the limit per minute rejects it', async () => {
  const limits = new Counts('free requests of an account in a minute');
  await expect(take(limits, true)).rejects.toBeInstanceOf(TooManyRequestsError);
  expect(limits.counted).toEqual([]);
});
