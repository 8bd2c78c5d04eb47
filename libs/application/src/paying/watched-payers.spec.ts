import { expect, test } from '@jest/globals';
import { type Accounts, HoldTaken, SystemClock, UpstreamFailure } from '#application';
import { type AccountEvent, accountDecider, type Charge } from '#domain';
import { money, Rejection, StoreUnavailable } from '#kernel';
import { WatchedPayers } from './watched-payers.ts';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const amounts = { atLeast: money.usd('1'), atMost: money.usd('1'), lifetimeMs: 1_000 };
const caller = { accountId: 'a', keyId: null };
const request = { holdId: 'r', query, ...amounts };
const hold = { holdId: 'r', payer: 'account-a', amount: money.usd('1'), expiresAt: 0 };
const held = { type: 'FundsHeld', data: { holdId: 'r', amount: money.toJson(money.usd('1')) } } as AccountEvent;
const away = new StoreUnavailable('away');

/** Holds of an account that answers with these, one after the other. */
function holdsOf(...outcomes: readonly (readonly AccountEvent[] | Error)[]): WatchedPayers {
  const left = [...outcomes];
  const run: Accounts['run'] = async () => {
    const outcome = left.shift() ?? [];
    if (outcome instanceof Error) throw outcome;
    return { events: outcome, state: accountDecider.initial(), revision: 0, position: 0n };
  };
  return new WatchedPayers({ run }, new SystemClock());
}

test.each<[string, string, readonly (readonly AccountEvent[] | Error)[], 'settle' | 'release' | 'take']>([
  ['none', 'when it is refused', [new Rejection('insufficient_balance', '')], 'take'],
  ['open', 'once it is made', [[held]], 'take'],
  ['open', 'when it is not known whether it was made', [away], 'take'],
  ['open', 'when another request has it', [[]], 'take'],
  ['open', 'when another request had it', [new Rejection('hold_resolved', '')], 'take'],
  ['charged', 'once it is settled', [[held], []], 'settle'],
  ['open', 'when it is not known whether it was settled', [[held], away], 'settle'],
  ['released', 'once it is released', [[held], []], 'release'],
])('a watched hold is %s %s', async (standing, _, outcomes, last) => {
  const holds = holdsOf(...outcomes);
  holds.watch('r', async () => {});
  const taken = holds.of(caller).take(request);
  await taken.catch(() => {});
  if (last === 'settle')
    await holds
      .of(caller)
      .settle(hold, {} as Charge)
      .catch(() => {});
  if (last === 'release')
    await holds.of(caller).release(hold, { failure: new UpstreamFailure('timeout', ''), attempts: [] });
  expect(holds.outcome('r')).toBe(standing);
});

test.each<[string, string, readonly (readonly AccountEvent[] | Error)[]]>([
  ['released', 'is given back', [[held], []]],
  ['open', 'is left to expire when it cannot be given back', [[held], new Rejection('hold_not_found', '')]],
])('a watched hold that is not confirmed is %s: it %s', async (standing, _, outcomes) => {
  const holds = holdsOf(...outcomes);
  holds.watch('r', () => Promise.reject(new Error('not mine')));
  await expect(holds.of(caller).take(request)).rejects.toThrow(standing === 'released' ? 'not mine' : '');
  expect(holds.outcome('r')).toBe(standing);
});

test('a hold is confirmed once it is made, and not when it is refused', async () => {
  const confirmed: string[] = [];
  const holds = holdsOf(new Rejection('insufficient_balance', ''), [held]);
  holds.watch('r', async () => void confirmed.push('r'));
  await expect(holds.of(caller).take(request)).rejects.toMatchObject({ code: 'insufficient_balance' });
  expect(confirmed).toEqual([]);
  await holds.of(caller).take(request);
  expect(confirmed).toEqual(['r']);
});

test('a hold that nobody watches is not remembered', async () => {
  const holds = holdsOf([held], []);
  const payer = holds.of(caller);
  await payer.settle(await payer.take(request), {} as Charge);
  expect(holds.outcome('r')).toBe('open');
});

test('a hold that another request has open is refused: its call would be served for nothing', async () => {
  await expect(holdsOf([]).of(caller).take(request)).rejects.toBeInstanceOf(HoldTaken);
});
