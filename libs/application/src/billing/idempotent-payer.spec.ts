import { describe, expect, test } from '@jest/globals';
import { type Accounts, HoldAlreadyExistsError, type Payer, PayerFactory, UpstreamError } from '#application';
import { type AccountEvent, accountDecider, type Charge } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { type Cause, money, Rejection, StoreUnavailableError, ZERO_USD } from '#kernel';
import { createTestRuntime, SystemClock } from '#testing';
import { useFakeTime } from '../../../testing/src/use-fake-time.ts';
import { IdempotentPayer, type PendingClaim } from './idempotent-payer.ts';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const amounts = { minAmount: money.parseUsd('1'), maxAmount: money.parseUsd('1'), priceList: 'p', lifetimeMs: 1_000 };
const caller = { accountId: 'a', keyId: null };
const request = { holdId: 'r', query, ...amounts };
const hold = {
  holdId: 'r',
  payer: 'account-a',
  amount: money.parseUsd('1'),
  availableAfter: ZERO_USD,
  expiresAt: 0,
};
const held = {
  type: 'FundsHeld',
  data: { holdId: 'r', amount: money.toJsonAmount(money.parseUsd('1')) },
} as AccountEvent;
const away = new StoreUnavailableError('away');

function createFactory(run: Accounts['run'], clock = new SystemClock()): PayerFactory {
  const dependencies = {
    clock,
    getProcessId: () => 'gateway-1',
    events: new MemoryEventStore(),
    runtime: createTestRuntime(),
  };
  return new PayerFactory({ accounts: { run } } as never, dependencies);
}

const lastingClaim: PendingClaim = { renew: async () => {}, confirm: async () => {} };

/** Returns a payer whose account returns these outcomes one after the other. */
function createPayer(
  outcomes: readonly (readonly AccountEvent[] | Error)[],
  claim: Partial<PendingClaim> = {},
): IdempotentPayer {
  const left = [...outcomes];
  const run: Accounts['run'] = async () => {
    const outcome = left.shift() ?? [];
    if (outcome instanceof Error) throw outcome;
    return { events: outcome, state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  return new IdempotentPayer(createFactory(run).forCaller(caller), { ...lastingClaim, ...claim }, createTestRuntime());
}

test.each([
  [true, true],
  [false, false],
])('if the clock of the gateway is reliable (%s), ends expired holds (%s)', async (isSure, isEnded) => {
  const clock: SystemClock = Object.create(new SystemClock(), { isReliable: { value: () => isSure } });
  let before = '';
  const run: Accounts['run'] = async (_, command) => {
    if (command.type === 'ExpireHolds') before = command.data.before;
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const expiresAt = clock.fromNow(-60_000);
  await createFactory(run, clock).endOverdueHolds('account-a', {} as Cause);
  expect(expiresAt <= before).toBe(isEnded);
});

const release = { failure: new UpstreamError('timeout', ''), attempts: [] };

test.each<[string, string, readonly (readonly AccountEvent[] | Error)[], 'settle' | 'release' | 'take']>([
  ['none', 'when the hold is rejected', [new Rejection('insufficient_balance', '')], 'take'],
  ['open', 'once money is held', [[held]], 'take'],
  ['open', 'when it is unknown whether money was held', [away], 'take'],
  ['open', 'when another request has the hold', [[]], 'take'],
  ['open', 'when another request had the hold', [new Rejection('hold_resolved', '')], 'take'],
  ['charged', 'once the hold is settled', [[held], []], 'settle'],
  ['open', 'when it is unknown whether the hold was settled', [[held], away], 'settle'],
  ['released', 'once the hold is released', [[held], []], 'release'],
])('reports the charge state "%s" %s', async (standing, _, outcomes, last) => {
  const payer = createPayer(outcomes);
  await payer.hold(request).catch(() => {});
  if (last === 'settle') await payer.settle(hold, {} as Charge, { isDelivered: true }).catch(() => {});
  if (last === 'release') await payer.release(hold, release);
  expect(payer.chargeState).toBe(standing);
});

test.each<[string, string, readonly (readonly AccountEvent[] | Error)[]]>([
  ['released', 'is released', [[held], []]],
  ['open', 'is left to expire if it cannot be released', [[held], new Rejection('hold_not_found', '')]],
])('reports the charge state "%s" if the claim is not confirmed and the hold %s', async (standing, _, outcomes) => {
  const payer = createPayer(outcomes, { confirm: () => Promise.reject(new Error('not mine')) });
  await expect(payer.hold(request)).rejects.toThrow(standing === 'released' ? 'not mine' : '');
  expect(payer.chargeState).toBe(standing);
});

test('confirms the claim once the hold is placed, and not if the hold is rejected', async () => {
  const confirmed: string[] = [];
  const confirm = async () => void confirmed.push('r');
  const payer = createPayer([new Rejection('insufficient_balance', ''), [held]], { confirm });
  await expect(payer.hold(request)).rejects.toMatchObject({ code: 'insufficient_balance' });
  expect(confirmed).toEqual([]);
  await payer.hold(request);
  expect(confirmed).toEqual(['r']);
});

describe('while a request waits for money', () => {
  const getTime = useFakeTime();

  test('its claim is renewed every few seconds, also after a failure, until the wait ends', async () => {
    let renewals = 0;
    const renew = async () => {
      renewals++;
      if (renewals === 1) throw away;
    };
    const waiting = Promise.withResolvers<never>();
    const inner = { id: 'account-a', hold: () => waiting.promise } as unknown as Payer;
    const holding = new IdempotentPayer(inner, { ...lastingClaim, renew }, createTestRuntime())
      .hold(request)
      .catch(() => {});
    await getTime().advance(30_000);
    expect(renewals).toBeGreaterThanOrEqual(6);
    waiting.reject(new Rejection('insufficient_balance', ''));
    await holding;
    const renewalsBefore = renewals;
    await getTime().advance(60_000);
    expect(renewals).toBe(renewalsBefore);
  });
});

test('throws HoldAlreadyExistsError if another request placed the hold, because the call would be free', async () => {
  await expect(createPayer([[]]).hold(request)).rejects.toBeInstanceOf(HoldAlreadyExistsError);
});
