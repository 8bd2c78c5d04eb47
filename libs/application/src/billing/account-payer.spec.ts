import { afterAll, expect, test } from '@jest/globals';
import { type Accounts, PayerFactory, SystemClock } from '#application';
import { type AccountCommand, accountDecider, type Charge } from '#domain';
import {
  AppendTooLargeError,
  money,
  PersistentMap,
  Rejection,
  StoreUnavailableError,
  UnknownEventError,
  UnknownOutcomeError,
} from '#kernel';
import { FakeClock } from '../../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../../testing/src/replace-delays.ts';

const time = new FakeClock('2026-11-22T12:00:00.000Z');
afterAll(replaceDelays(time.delay));

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const request = {
  holdId: 'r',
  query,
  minAmount: money.parseUsd('1'),
  maxAmount: money.parseUsd('1'),
  priceList: 'p',
  lifetimeMs: 1_000,
};

/** Returns the commands that the account receives when the process that `owner` names places a hold. */
async function taken(owner: () => string): Promise<readonly AccountCommand[]> {
  const commands: AccountCommand[] = [];
  const run: Accounts['run'] = async (_, command) => {
    commands.push(command);
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const payer = new PayerFactory({ accounts: { run } } as never, new SystemClock(), owner).forCaller({
    accountId: 'a',
    keyId: null,
  });
  await payer.hold(request).catch((error) => {
    if (error instanceof StoreUnavailableError) throw error;
  });
  return commands;
}

test('records the process that owns a hold', async () => {
  expect(await taken(() => 'gateway-1')).toMatchObject([{ type: 'HoldFunds', data: { owner: 'gateway-1' } }]);
});

test('rejects a hold with StoreUnavailableError while other processes may consider this one dead', async () => {
  const away = () => {
    throw new StoreUnavailableError('this process cannot show that it is alive');
  };
  await expect(taken(away)).rejects.toBeInstanceOf(StoreUnavailableError);
});

/**
 * Places a hold of ten minutes whose append has an unknown outcome. `said` returns the outcome of each attempt to
 * release the hold. Returns the times of these attempts, in seconds since the hold failed.
 */
async function unconfirmed(said: (look: number) => Error | 'released'): Promise<readonly number[]> {
  const began = time.nowMs();
  const askedAt: number[] = [];
  const run = async (_: string, command: AccountCommand) => {
    if (command.type === 'HoldFunds') throw new UnknownOutcomeError('silent');
    const answer = said(askedAt.push((time.nowMs() - began) / 1_000));
    if (answer instanceof Error) throw answer;
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const payer = new PayerFactory({ accounts: { run } } as never, time, () => 'gateway-1').forCaller({
    accountId: 'a',
    keyId: null,
  });
  await expect(payer.hold({ ...request, lifetimeMs: 600_000 })).rejects.toBeInstanceOf(StoreUnavailableError);
  await time.advance(900_000);
  return askedAt;
}

const notThere = new Rejection('hold_not_found', 'there is none');

test('tries to release an unconfirmed hold after 0.5 s, and every 5 s while the store is unavailable', async () => {
  const looks = await unconfirmed((look) => (look < 4 ? new StoreUnavailableError('silent') : 'released'));
  expect(looks).toEqual([0.5, 5.5, 10.5, 15.5]);
});

test('tries to release a missing hold until after its expiry, at intervals that grow to one minute', async () => {
  const looks = await unconfirmed(() => notThere);
  expect(looks.slice(0, 8)).toEqual([0.5, 5.5, 15.5, 35.5, 75.5, 135.5, 195.5, 255.5]);
  expect(looks.at(-1)).toBe(615.5);
});

test('releases an unconfirmed hold that appears within a minute after it was last reported missing', async () => {
  const looks = await unconfirmed((look) => (look <= 5 ? notThere : 'released'));
  expect(looks).toEqual([0.5, 5.5, 15.5, 35.5, 75.5, 135.5]);
});

test('does not retry the release of an unconfirmed hold that has ended', async () => {
  expect(await unconfirmed(() => new Rejection('hold_resolved', 'it has ended'))).toEqual([0.5]);
});

/**
 * Settles a hold of one minute while the first `times` commands fail with this error. Returns the result of the
 * settlement and the number of commands.
 */
async function settling(error: Error, times: number) {
  let asked = 0;
  const run = async () => {
    if (asked++ < times) throw error;
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const payer = new PayerFactory({ accounts: { run } } as never, time, () => 'gateway-1').forCaller({
    accountId: 'a',
    keyId: null,
  });
  const expiresAt = time.nowMs() + 60_000;
  const hold = { holdId: 'r', payer: payer.id, amount: money.parseUsd('1'), beside: 0n, reach: 0n, expiresAt } as never;
  const settled = payer.settle(hold, {} as Charge).then(
    () => 'settled',
    (failure) => failure,
  );
  await time.advance(59_000);
  await time.advance(10_000);
  return { became: await settled, asked };
}

test.each([
  ['is unavailable', new StoreUnavailableError('away')],
  ['rejects it until an operator has intervened', new Error('permission denied')],
])('retries a charge until its hold expires if the store %s', async (_, error) => {
  expect(await settling(error, 10)).toEqual({ became: 'settled', asked: 11 });
  expect((await settling(error, 1_000)).became).toBe(error);
});

test('returns the charged amount if the response to a settlement was lost, or zero if the hold expired', async () => {
  const told = async (ended: string, price: string) => {
    const one = PersistentMap.empty<string>().with('r', ended);
    const state = { ...accountDecider.getInitialState(), resolved: [one, PersistentMap.empty<string>()] as never };
    const run = async () => ({ events: [], state, revision: 0, position: 0n });
    const payer = new PayerFactory({ accounts: { run } } as never, time, () => 'g').forCaller({
      accountId: 'a',
      keyId: null,
    });
    return payer.settle(
      { holdId: 'r', amount: money.parseUsd('1') } as never,
      { price: money.parseUsd(price).toString() } as never,
    );
  };
  expect(await told('settled', '0.25')).toBe(money.parseUsd('0.25'));
  expect(await told('settled', '3')).toBe(money.parseUsd('1'));
  expect(await told('absorbed', '0.25')).toBe(0n);
});

test.each([
  new Rejection('hold_resolved', 'it has ended'),
  new UnknownEventError('Multiplied', 'a fact'),
  new AppendTooLargeError('too large'),
])('does not retry a charge that the store rejects for good: %s', async (error) => {
  expect(await settling(error, 1)).toEqual({ became: error, asked: 1 });
});
