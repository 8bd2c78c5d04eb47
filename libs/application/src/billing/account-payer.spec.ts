import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Map as ImmutableMap } from 'immutable';
import {
  type Accounts,
  type Clock,
  createStreams,
  type Hold,
  type HoldRetry,
  PayerFactory,
  UpstreamError,
} from '#application';
import { type AccountCommand, accountDecider, type Charge, UNRESTRICTED_ACCESS } from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  AppendTooLargeError,
  money,
  NO_SNAPSHOTS,
  Rejection,
  StoreUnavailableError,
  UnknownEventError,
  UnknownOutcomeError,
} from '#kernel';
import { createTestRuntime, SystemClock } from '#testing';
import { FakeClock } from '../../../testing/src/fake-clock.ts';
import { replaceDelays, replaceTimeouts } from '../../../testing/src/replace-delays.ts';
import { createCharge } from '../../../testing/src/scenarios/charges.ts';
import { TEST_CAUSE } from '../../../testing/src/test-cause.ts';

const time = new FakeClock('2026-11-22T12:00:00.000Z');
afterAll(replaceDelays(time.delay));
afterAll(replaceTimeouts(time.delay));

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const request = {
  holdId: 'r',
  query,
  minAmount: money.parseUsd('1'),
  maxAmount: money.parseUsd('1'),
  priceList: 'p',
  lifetimeMs: 1_000,
};

let alarms: string[];
let retries: HoldRetry[];
beforeEach(() => {
  [alarms, retries] = [[], []];
});

/** Returns the payers of accounts whose commands are run by `run`. */
function createFactory(run: unknown, clock: Clock = time, getProcessId = () => 'gateway-1') {
  const [ownAlarms, ownRetries] = [alarms, retries]; // retries of an earlier test may still be running
  const runtime = createTestRuntime({
    now: () => time.nowMs(),
    reportError: (problem) => void ownAlarms.push(problem),
    chance: () => 0,
  });
  const logRetry = (retry: HoldRetry) => void ownRetries.push(retry);
  const dependencies = { clock, getProcessId, events: new MemoryEventStore(), runtime, logRetry };
  return new PayerFactory({ accounts: { run } } as never, dependencies);
}

function createPayer(...args: Parameters<typeof createFactory>) {
  return createFactory(...args).forCaller({ accountId: 'a', keyId: null });
}

/** Returns the commands that the account receives when the process that `owner` names places a hold. */
async function taken(owner: () => string): Promise<readonly AccountCommand[]> {
  const commands: AccountCommand[] = [];
  const run: Accounts['run'] = async (_, command) => {
    commands.push(command);
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const payer = createPayer(run, new SystemClock(), owner);
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
  const payer = createPayer(run);
  await expect(payer.hold({ ...request, lifetimeMs: 600_000 })).rejects.toBeInstanceOf(StoreUnavailableError);
  await time.advance(900_000);
  return askedAt;
}

test.each([
  [4_999, ['HoldFunds']],
  [5_000, ['HoldFunds', 'ReleaseHold']],
])(
  'a hold that is confirmed %d ms after its request is used only if no other process may have ended it',
  async (milliseconds, expected) => {
    const commands: string[] = [];
    const run = async (_: string, { type }: AccountCommand) => {
      commands.push(type);
      if (type === 'HoldFunds') time.jumpForward(milliseconds);
      const events = [{ type: 'FundsHeld', data: { amount: '1' } }];
      return { events, state: accountDecider.getInitialState(), revision: 0, position: 0n };
    };
    const isServed = createPayer(run)
      .hold({ ...request, lifetimeMs: 600_000 })
      .then(
        () => true,
        (error) => !(error instanceof StoreUnavailableError),
      );
    expect(await isServed).toBe(expected.length === 1);
    await time.advance(500);
    expect(commands).toEqual(expected);
  },
);

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
 * Settles a hold of one minute while the first `times` commands fail with this error. Returns the result for the
 * caller, after how many seconds it had it, and the commands.
 */
async function settling(error: Error, times: number, isDelivered = true) {
  const began = time.nowMs();
  const commands: string[] = [];
  const run = async (_: string, { type }: AccountCommand) => {
    if (commands.push(type) <= times) throw error;
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const payer = createPayer(run);
  const expiresAt = began + 60_000;
  const hold = { holdId: 'r', payer: payer.id, amount: money.parseUsd('1'), beside: 0n, reach: 0n, expiresAt } as never;
  const settled = payer.settle(hold, {} as Charge, { isDelivered }).then(
    () => ['settled', time.nowMs() - began],
    (failure) => [failure, time.nowMs() - began],
  );
  await time.advance(59_000);
  await time.advance(30_000);
  const [became, afterMs] = await settled;
  return { became, afterMs, commands };
}

describe.each([
  ['is unavailable', new StoreUnavailableError('away')],
  ['rejects it until an operator has intervened', new Error('permission denied')],
])('a charge while the store %s', (_, error) => {
  test('succeeds if a retry within 8 s does', async () => {
    const { became, commands } = await settling(error, 4);
    expect([became, commands]).toEqual(['settled', Array(5).fill('SettleHold')]);
  });

  test('fails for its caller after 8 s', async () => {
    for (const isDelivered of [true, false])
      expect(await settling(error, 1_000, isDelivered)).toMatchObject({
        became: expect.any(StoreUnavailableError),
        afterMs: 8_000,
      });
  });

  test('is retried until its hold expires if the response was delivered', async () => {
    const { commands } = await settling(error, 10);
    expect(commands).toEqual(Array(11).fill('SettleHold'));
    expect((await settling(error, 1_000)).commands).toHaveLength(15);
  });

  test('is never retried after its caller has failed if the response was not delivered, but absorbed', async () => {
    const { commands } = await settling(error, 10, false);
    expect(new Set(commands.slice(5))).toEqual(new Set(['AbsorbCharge']));
    expect(commands).toHaveLength(11);
    expect((await settling(error, 1_000, false)).commands.length).toBeGreaterThan(20); // even after the expiry
  });
});

test.each(['settle', 'release'] as const)('reports a cost that the store does not record for good: %s', async (end) => {
  const payer = createPayer(() => Promise.reject(new Rejection('hold_not_found', '')));
  const hold = { holdId: 'r', payer: payer.id, amount: money.parseUsd('1'), expiresAt: time.nowMs() + 1_000 } as Hold;
  const charge = { cost: '307' } as Charge;
  const failure = new UpstreamError('upstream_error', '');
  const ending =
    end === 'settle'
      ? payer.settle(hold, charge, { isDelivered: false })
      : payer.release(hold, { failure, attempts: [], absorbed: charge });
  await expect(ending).rejects.toBeInstanceOf(Rejection);
  expect(alarms).toEqual(['hold r of account-a: usage of 307 pUSD was not recorded']);
});

test('returns the charged amount if the response to a settlement was lost, or zero if the hold expired', async () => {
  const told = async (ended: string, price: string) => {
    const resolved = [ImmutableMap({ r: ended }), ImmutableMap()] as never;
    const state = { ...accountDecider.getInitialState(), resolved };
    const run = async () => ({ events: [], state, revision: 0, position: 0n });
    const payer = createPayer(run);
    return payer.settle(
      { holdId: 'r', amount: money.parseUsd('1') } as never,
      { price: money.parseUsd(price).toString() } as never,
      { isDelivered: false },
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
  for (const isDelivered of [true, false])
    expect(await settling(error, 1, isDelivered)).toEqual({ became: error, afterMs: 0, commands: ['SettleHold'] });
});

describe('a charge that fails because of a programming error', () => {
  const error = new TypeError('x is not a function');
  const failed = 'the charge of hold r of account-a failed unexpectedly';

  test('is tried once and reported, if the response was delivered', async () => {
    expect(await settling(error, 1_000)).toEqual({ became: error, afterMs: 0, commands: ['SettleHold'] });
    expect(alarms).toEqual([failed, expect.stringMatching(/^hold r of account-a: usage of .* was not recorded$/)]);
    expect(retries).toEqual([]);
  });

  test('is tried once, reported and absorbed, if the response was not delivered', async () => {
    const { became, afterMs, commands } = await settling(error, 1, false);
    expect([became, afterMs, commands]).toEqual([error, 0, ['SettleHold', 'AbsorbCharge']]);
    expect(alarms).toEqual([failed]);
  });

  test('is reported as unrecorded, if it cannot be absorbed either', async () => {
    expect((await settling(error, 1_000, false)).commands).toEqual(['SettleHold', 'AbsorbCharge']);
    expect(alarms).toEqual([
      failed,
      'the absorption of hold r of account-a failed unexpectedly',
      expect.stringMatching(/^hold r of account-a: usage of .* was not recorded$/),
    ]);
  });
});

test.each([
  ['charged, if the response was delivered', true, 'SettleHold'],
  ['absorbed, if it was not', false, 'AbsorbCharge'],
])('a charge that is not confirmed in time stays pending until it is %s', async (_, isDelivered, last) => {
  const commands: string[] = [];
  const factory = createFactory(async (_id: string, { type }: AccountCommand) => {
    commands.push(type);
    if (commands.length <= 8) throw new StoreUnavailableError('away');
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  });
  const { pendingWrites } = factory;
  const payer = factory.forCaller({ accountId: 'a', keyId: null });
  const hold = { holdId: 'r', payer: payer.id, amount: money.parseUsd('1'), expiresAt: time.nowMs() + 60_000 } as Hold;
  const settling = payer.settle(hold, {} as Charge, { isDelivered }).catch((error) => error);
  let isIdle = false;
  await time.advance(8_000);
  expect(await settling).toBeInstanceOf(StoreUnavailableError);
  const waiting = pendingWrites.waitUntilIdle().then(() => {
    isIdle = true;
  });
  expect([isIdle, pendingWrites.holdIds]).toEqual([false, ['r']]);
  await time.advance(30_000);
  await waiting;
  expect([pendingWrites.holdIds, commands.at(-1)]).toEqual([[], last]);
});

test('logs each retry with its hold, and reports all of them as the same problem', async () => {
  const error = new StoreUnavailableError('away');
  await settling(error, 3);
  const logged = { holdId: 'r', payer: 'account-a', change: 'charge', error };
  expect(retries).toEqual([
    { ...logged, attempt: 1, waitMs: 500 },
    { ...logged, attempt: 2, waitMs: 1_000 },
    { ...logged, attempt: 3, waitMs: 2_000 },
  ]);
  expect(new Set(alarms)).toEqual(new Set(['the charge of a hold was not recorded; retrying']));
});

test('does not retry the release of an unconfirmed hold after a programming error, and reports it', async () => {
  expect(await unconfirmed(() => new TypeError('x is not a function'))).toEqual([0.5]);
  expect(alarms).toEqual(['the release of hold r of account-a failed unexpectedly']);
});

test('returns the extended amount, and later the charge, if the responses to extension and settlement were lost', async () => {
  const runtime = createTestRuntime();
  const streams = createStreams(new MemoryEventStore(), NO_SNAPSHOTS, runtime);
  const [id, lossy] = [randomUUID(), new Set<AccountCommand['type']>(['ExtendHold', 'SettleHold'])];
  const run: Accounts['run'] = async (...call) => {
    const outcome = await streams.accounts.run(...call);
    if (lossy.delete(call[1].type)) throw new UnknownOutcomeError('the response was lost');
    return outcome;
  };
  const accounts = { ...streams.accounts, run };
  const dependencies = {
    clock: time,
    getProcessId: () => 'gateway-1',
    events: new MemoryEventStore(),
    runtime,
  };
  const payer = new PayerFactory({ ...streams, accounts }, dependencies).forCaller({ accountId: id, keyId: null });
  const key = { keyId: 'k', name: 'k', hash: 'h', secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS, limit: null };
  const at = time.now();
  await run(id, { type: 'OpenAccount', data: { key: { ...key, resetPeriod: null, expireAt: null }, at } }, TEST_CAUSE);
  const credit = { creditId: 'c', method: 'm', amount: money.parseUsd('1.4'), bonus: money.parseUsd('0'), at };
  await run(id, { type: 'AddCredit', data: credit }, TEST_CAUSE);
  const hold = await payer.hold({ ...request, maxAmount: money.parseUsd('1'), lifetimeMs: 60_000 });

  const extending = payer.extend(hold, { minAmount: money.parseUsd('1.2'), targetAmount: money.parseUsd('3') });
  await time.advance(1_000);
  expect(await extending).toMatchObject({ amount: money.parseUsd('1.4') });

  const settling = payer.settle((await extending) as Hold, createCharge({ price: money.parseUsd('2').toString() }), {
    isDelivered: true,
  });
  await time.advance(1_000);
  expect(await settling).toBe(money.parseUsd('1.4'));
  expect((await streams.accounts.read(id)).available).toBe(0n);
});
