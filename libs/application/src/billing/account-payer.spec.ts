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

/** What is asked of the account when a process with this owner takes a hold. */
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

test('a hold has the name of its process, by which it is freed when that has died', async () => {
  expect(await taken(() => 'gateway-1')).toMatchObject([{ type: 'HoldFunds', data: { owner: 'gateway-1' } }]);
});

test('a process that others may take for dead holds nothing: its holds would be freed while they are used', async () => {
  const away = () => {
    throw new StoreUnavailableError('this process cannot show that it is alive');
  };
  await expect(taken(away)).rejects.toBeInstanceOf(StoreUnavailableError);
});

/**
 * Takes a hold for ten minutes of which the store says nothing, and then these things when it is asked to release it.
 * Returns when it was asked: seconds since the hold was refused.
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

test('a hold that the store did not confirm is released once the store says that it is there', async () => {
  const looks = await unconfirmed((look) => (look < 4 ? new StoreUnavailableError('silent') : 'released'));
  expect(looks).toEqual([0.5, 5.5, 10.5, 15.5]);
});

test('a hold that the store did not confirm is looked for until it would have expired, ever more seldom', async () => {
  const looks = await unconfirmed(() => notThere);
  expect(looks.slice(0, 8)).toEqual([0.5, 5.5, 15.5, 35.5, 75.5, 135.5, 195.5, 255.5]);
  expect(looks.at(-1)).toBe(615.5);
});

test('a hold that is stored a minute after the store said that it is not there is released', async () => {
  const looks = await unconfirmed((look) => (look <= 5 ? notThere : 'released'));
  expect(looks).toEqual([0.5, 5.5, 15.5, 35.5, 75.5, 135.5]);
});

test('what cannot be released is not asked for again', async () => {
  expect(await unconfirmed(() => new Rejection('hold_resolved', 'it has ended'))).toEqual([0.5]);
});

/** Settles a hold of a minute in a store that fails so. Returns whether it was settled, and what became of it. */
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
  ['is away', new StoreUnavailableError('away')],
  ['refuses it, until somebody has seen to it', new Error('permission denied')],
])('a charge is not given up before its hold expires where the store %s', async (_, error) => {
  expect(await settling(error, 10)).toEqual({ became: 'settled', asked: 11 });
  expect((await settling(error, 1_000)).became).toBe(error);
});

test('a charge whose confirmation was lost is told as it was made, and none where the hold had expired', async () => {
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
])('what cannot be charged any more is not tried again: %s', async (error) => {
  expect(await settling(error, 1)).toEqual({ became: error, asked: 1 });
});
