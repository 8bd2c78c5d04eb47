import { describe, expect, test } from '@jest/globals';
import { money, Rejection, ZERO_USD } from '#kernel';
import { createTestRuntime } from '#testing';
import { DedupingPayer, RepeatedRequestError } from './deduping-payer.ts';
import { inProgressError } from './idempotency-conflict.ts';
import type { Hold, HoldRequest, Payer } from './payer.ts';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const amounts = { minAmount: money.parseUsd('1'), maxAmount: money.parseUsd('1'), priceList: 'p', lifetimeMs: 1_000 };
const request: HoldRequest = { holdId: 'r', query, ...amounts };
const response = { status: 200, headers: {}, body: Buffer.from('hi'), markDelivered: async () => {} };

/** Creates the payer of an API key whose setting is `actual`, on a gateway that knows `known`. */
function createPayer(known: number | null, actual: number | null, outcomes: readonly ('claimed' | 'repeat' | Error)[]) {
  const calls: string[] = [];
  const account = (name: string): Payer => ({
    id: 'account-a',
    assertAffordable: async ({ dedupeSeconds }) => {
      calls.push(`ask ${name}`);
      if (dedupeSeconds !== actual) throw createRejection();
      throw new Rejection('key_limit_exceeded', 'used up');
    },
    hold: async ({ dedupeSeconds }): Promise<Hold> => {
      calls.push(`hold ${name} ${dedupeSeconds}`);
      if (dedupeSeconds !== actual) throw createRejection();
      return { holdId: 'r', payer: 'account-a', amount: ZERO_USD, availableAfter: ZERO_USD, expiresAt: 0 };
    },
    extend: async () => 'expired',
    settle: async () => ZERO_USD,
    release: async () => void calls.push(`release ${name}`),
  });
  const createRejection = () => new Rejection('dedupe_changed', 'changed', { dedupe_seconds: String(actual) });
  let setting = known;
  const left = [...outcomes];
  const payer = new DedupingPayer(
    account('account'),
    {
      get: () => setting,
      set: (seconds) => {
        setting = seconds;
      },
    },
    async (_, { lifetimeSeconds, hasWaited }) => {
      calls.push(`claim ${lifetimeSeconds}${hasWaited ? ' again' : ''}`);
      const outcome = left.shift();
      if (outcome instanceof Error) throw outcome;
      const complete = async () => {};
      return outcome === 'claimed' ? { payer: account('claimed'), complete, markDelivered: async () => {} } : response;
    },
    createTestRuntime(),
  );
  return { payer, calls, getSetting: () => setting };
}

describe('a request of an API key', () => {
  test('without the setting is held at once, and nothing is claimed or read', async () => {
    const { payer, calls } = createPayer(null, null, []);
    await payer.hold(request);
    expect(calls).toEqual(['hold account null']);
  });

  test('with the setting is claimed before money is held, and released with its claim', async () => {
    const { payer, calls } = createPayer(60, 60, ['claimed']);
    await payer.release(await payer.hold(request), {} as never);
    expect(calls).toEqual(['claim 60', 'hold claimed 60', 'release claimed']);
  });

  test.each([
    ['was set', null, 60, ['hold account null', 'claim 60', 'hold claimed 60']],
    ['was changed', 30, 60, ['claim 30', 'hold claimed 30', 'hold claimed 60']],
    ['was removed', 60, null, ['claim 60', 'hold claimed 60', 'hold claimed null']],
  ])('finds out that the setting %s, which the gateway then knows', async (_, known, actual, expected) => {
    const { payer, calls, getSetting } = createPayer(known, actual, ['claimed']);
    await payer.hold(request);
    expect([calls, getSetting()]).toEqual([expected, actual]);
  });

  test('that repeats another one waits for its response, and holds no money', async () => {
    const { payer, calls } = createPayer(60, 60, [inProgressError('content'), 'repeat']);
    const error = await payer.hold(request).catch((caught) => caught);
    expect(error).toBeInstanceOf(RepeatedRequestError);
    expect(error.response).toBe(response);
    expect(calls).toEqual(['claim 60', 'claim 60 again', 'ask account']);
  });

  test('is no repeat if the setting was removed since', async () => {
    const { payer, calls } = createPayer(60, null, ['repeat']);
    await payer.hold(request);
    expect(calls).toEqual(['claim 60', 'ask account', 'hold account null']);
  });

  test('stops waiting when its client disconnects, or its time has expired', async () => {
    const running = Array.from({ length: 9 }, () => inProgressError('content'));
    const gone = createPayer(60, 60, running).payer.hold({ ...request, disconnected: Promise.resolve() });
    await expect(gone).rejects.toMatchObject({ code: 'client_disconnected' });
    const signal = AbortSignal.abort(new Error('over'));
    await expect(createPayer(60, 60, running).payer.hold({ ...request, signal })).rejects.toThrow();
  });
});
