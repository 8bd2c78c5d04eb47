import { afterAll, expect, test } from '@jest/globals';
import { type Accounts, Payers, SystemClock } from '#application';
import { type AccountCommand, accountDecider, type Charge } from '#domain';
import { AppendTooLarge, money, OutcomeUnknown, Rejection, StoreUnavailable, UnknownFact } from '#kernel';
import { replacePauses } from '../../../testing/src/pauses.ts';
import { VirtualTime } from '../../../testing/src/virtual-time.ts';

const time = new VirtualTime('2026-11-22T12:00:00.000Z');
afterAll(replacePauses(time.delay));

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const request = {
  holdId: 'r',
  query,
  atLeast: money.usd('1'),
  atMost: money.usd('1'),
  priceList: 'p',
  lifetimeMs: 1_000,
};

/** What is asked of the account when a process with this owner takes a hold. */
async function taken(owner: () => string): Promise<readonly AccountCommand[]> {
  const commands: AccountCommand[] = [];
  const run: Accounts['run'] = async (_, command) => {
    commands.push(command);
    return { events: [], state: accountDecider.initial(), revision: 0, position: 0n };
  };
  const payer = new Payers({ accounts: { run } } as never, new SystemClock(), owner).of({
    accountId: 'a',
    keyId: null,
  });
  await payer.take(request).catch((error) => {
    if (error instanceof StoreUnavailable) throw error;
  });
  return commands;
}

test('a hold has the name of its process, by which it is freed when that has died', async () => {
  expect(await taken(() => 'gateway-1')).toMatchObject([{ type: 'HoldFunds', data: { owner: 'gateway-1' } }]);
});

test('a process that others may take for dead holds nothing: its holds would be freed while they are used', async () => {
  const away = () => {
    throw new StoreUnavailable('this process cannot show that it is alive');
  };
  await expect(taken(away)).rejects.toBeInstanceOf(StoreUnavailable);
});

/** Takes a hold of which the store says nothing, and then these things when it is asked to release it. Returns how often it was. */
async function unconfirmed(...said: readonly (Error | 'released')[]): Promise<number> {
  let released = 0;
  const run = async (_: string, command: AccountCommand) => {
    const answer = command.type === 'HoldFunds' ? new OutcomeUnknown('silent') : said[released++];
    if (answer instanceof Error) throw answer;
    return { events: [], state: accountDecider.initial(), revision: 0, position: 0n };
  };
  const payer = new Payers({ accounts: { run } } as never, time, () => 'gateway-1').of({ accountId: 'a', keyId: null });
  await expect(payer.take({ ...request, lifetimeMs: 600_000 })).rejects.toBeInstanceOf(StoreUnavailable);
  for (let looks = 0; looks <= said.length; looks++) await time.pass(10_000);
  return released;
}

test('a hold that the store did not confirm is released once the store says that it is there', async () => {
  const notThere = new Rejection('hold_not_found', 'there is none');
  const silent = new StoreUnavailable('silent');
  expect(await unconfirmed(silent, silent, silent, silent, notThere, 'released')).toBe(6);
});

test('a hold that the store did not confirm, and that is not there, is forgotten after some looks', async () => {
  const notThere = new Rejection('hold_not_found', 'there is none');
  expect(await unconfirmed(notThere, notThere, notThere, notThere, notThere)).toBe(3);
});

/** Settles a hold of a minute in a store that fails so. Returns whether it was settled, and what became of it. */
async function settling(error: Error, times: number) {
  let asked = 0;
  const run = async () => {
    if (asked++ < times) throw error;
    return { events: [], state: accountDecider.initial(), revision: 0, position: 0n };
  };
  const payer = new Payers({ accounts: { run } } as never, time, () => 'gateway-1').of({ accountId: 'a', keyId: null });
  const expiresAt = time.milliseconds() + 60_000;
  const hold = { holdId: 'r', payer: payer.id, amount: money.usd('1'), beside: 0n, reach: 0n, expiresAt } as never;
  const settled = payer.settle(hold, {} as Charge).then(
    () => 'settled',
    (failure) => failure,
  );
  await time.pass(59_000);
  await time.pass(10_000);
  return { became: await settled, asked };
}

test.each([
  ['is away', new StoreUnavailable('away')],
  ['refuses it, until somebody has seen to it', new Error('permission denied')],
])('a charge is not given up before its hold expires where the store %s', async (_, error) => {
  expect(await settling(error, 10)).toEqual({ became: 'settled', asked: 11 });
  expect((await settling(error, 1_000)).became).toBe(error);
});

test.each([
  new Rejection('hold_resolved', 'it has ended'),
  new UnknownFact('Multiplied', 'a fact'),
  new AppendTooLarge('too large'),
])('what cannot be charged any more is not tried again: %s', async (error) => {
  expect(await settling(error, 1)).toEqual({ became: error, asked: 1 });
});
