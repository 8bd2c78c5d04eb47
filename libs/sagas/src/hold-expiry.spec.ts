import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Accounts, createStreams, EXPIRY_MARGIN_MS, HoldCommandRouter, type Streams } from '#application';
import { type ChallengeCommand, type DomainEvent, UNRESTRICTED_ACCESS } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS, parseUsd, Rejection, START_POSITION, type StoredEvent } from '#kernel';
import { expireHolds } from '#sagas';
import { createTestRuntime } from '#testing';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../testing/src/replace-delays.ts';
import { createCharge } from '../../testing/src/scenarios/charges.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { TEST_CAUSE } from '../../testing/src/test-cause.ts';

const time = new FakeClock('2026-11-20T12:00:00.000Z');
afterAll(replaceDelays(time.delay));

type HoldExpiryPorts = Parameters<typeof expireHolds>[0];

const MINUTE = 60_000;
/** A hold with this remaining time is ended after one minute, because the sweep adds a margin. */
const EXPIRES_IN = MINUTE - EXPIRY_MARGIN_MS;
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const charge = createCharge({ price: '7', cost: '5' });
const secret = { key: '', box: '' };

let store: MemoryEventStore;
let accounts: Accounts;
let stop: AbortController;
let running: Promise<void>[];
let alarms: string[];
/** Processes that `findStaleProcesses` returns. */
let dead: string[];

beforeEach(() => {
  store = new MemoryEventStore();
  stop = new AbortController();
  running = [];
  alarms = [];
  dead = [];
  accounts = writePath();
});

afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

/** Creates the write paths of a separate process. */
function streams(): Streams {
  const runtime = createTestRuntime({ sleep: async () => {}, reportError: (problem) => void alarms.push(problem) });
  return createStreams(store, NO_SNAPSHOTS, runtime);
}

function writePath(): Accounts {
  return streams().accounts;
}

function payersOf(accounts: Accounts): HoldCommandRouter {
  return new HoldCommandRouter({ accounts } as never);
}

/** Starts a sweep, by default with the write paths of a separate process. */
function start({
  payers = new HoldCommandRouter(streams()),
  clock = time,
  findOverduePayers: overdue = openHoldsPast,
  findStaleProcesses: seeminglyDead = async () => [...dead],
  findPayersByOwner: heldBy = openHoldsOf,
  signal = stop.signal,
}: Partial<HoldExpiryPorts & { readonly signal: AbortSignal }> = {}): void {
  const alarm = (problem: string) => void alarms.push(problem);
  running.push(
    expireHolds(
      {
        payers,
        clock,
        findOverduePayers: overdue,
        findStaleProcesses: seeminglyDead,
        findPayersByOwner: heldBy,
        runtime: createTestRuntime({ ...time.timers, reportError: alarm }),
      },
      signal,
    ),
  );
}

async function facts(): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all;
}

const ended = async () => (await facts()).flatMap(({ type, data }) => (type === 'HoldExpired' ? [data.holdId] : []));

/** Behaves like an up-to-date read model. */
async function openHolds() {
  const open = new Map<string, { readonly payer: string; readonly expiresAt: string; readonly owner?: string }>();
  for (const fact of await facts()) {
    if (fact.type === 'FundsHeld') open.set(fact.data.holdId, { payer: fact.stream, ...fact.data });
    else if ('held' in fact.data) open.delete(fact.data.holdId);
  }
  return [...open.values()];
}

async function openHoldsPast(now: string): Promise<readonly string[]> {
  const past = (await openHolds()).filter((each) => each.expiresAt <= now);
  return [...new Set(past.map(({ payer }) => payer))];
}

async function openHoldsOf(owners: readonly string[]) {
  const holds = await openHolds();
  return holds.flatMap(({ payer, owner }) => (owner !== undefined && owners.includes(owner) ? [{ payer, owner }] : []));
}

/** Creates an account with holds of 1 USD each, which are ended after one minute. */
const accountWith = (...holdIds: readonly string[]) => accountOf(undefined, ...holdIds);

/** Like `accountWith`, but the holds belong to the process `owner`. */
async function accountOf(owner: string | undefined, ...holdIds: readonly string[]): Promise<string> {
  const id = randomUUID();
  const key = {
    keyId: 'k',
    name: 'k',
    hash: 'h',
    secret,
    limit: null,
    resetPeriod: null,
    expireAt: null,
    ...UNRESTRICTED_ACCESS,
  };
  await accounts.run(id, { type: 'OpenAccount', data: { key, at: time.now() } }, TEST_CAUSE);
  const credit = {
    creditId: 'c',
    method: 'm',
    amount: parseUsd(holdIds.length + 1),
    bonus: parseUsd(0),
    at: time.now(),
  };
  await accounts.run(id, { type: 'AddCredit', data: credit }, TEST_CAUSE);
  for (const holdId of holdIds) await placeHold(id, holdId, owner);
  return id;
}

async function placeHold(accountId: string, holdId: string, owner?: string): Promise<void> {
  const owned = owner === undefined ? {} : { owner };
  const amounts = { minAmount: parseUsd(1), maxAmount: parseUsd(1), ...owned, expiresAt: time.fromNow(EXPIRES_IN) };
  const data = { holdId, keyId: 'k', ...amounts, query, at: time.now() };
  await accounts.run(accountId, { type: 'HoldFunds', data }, TEST_CAUSE);
}

describe('a hold', () => {
  test('is ended within a second after its expiry plus the margin, not earlier', async () => {
    await accountWith('h1');
    start();
    await time.advance(MINUTE - 1);
    expect(await ended()).toEqual([]);
    await time.advance(1_000);
    expect(await ended()).toEqual(['h1']);
  });

  test.each(['it has expired', 'its process has died'])(
    'is ended if it belongs to a challenge and %s; the proof can then be used again',
    async (why) => {
      const { challenges } = streams();
      const [id, price] = [randomUUID(), parseUsd('0.0115')];
      const data = createIssuedChallenge({
        expiresAt: time.fromNow(MINUTE),
        usableUntil: time.fromNow(60 * MINUTE),
        at: time.now(),
      });
      const run = (command: ChallengeCommand) => challenges.run(id, command, TEST_CAUSE);
      const claim = (holdId: string) => {
        const terms = { holdId, request: data.request, maxAmount: price, owner: 'a', query: data.query };
        return run({ type: 'ClaimChallenge', data: { ...terms, expiresAt: time.fromNow(EXPIRES_IN), at: time.now() } });
      };
      await run({ type: 'IssueChallenge', data });
      await claim('h1');
      await expect(claim('h2')).rejects.toMatchObject({ code: 'challenge_running' });
      if (why === 'its process has died') dead = ['a'];
      start();
      await time.advance(why === 'its process has died' ? MINUTE / 2 : MINUTE + 1_000);
      expect([await ended(), alarms]).toEqual([['h1'], []]);
      expect((await claim('h2')).events.map(({ type }) => type)).toEqual(['FundsHeld']);
    },
  );

  test('is not ended while the clock is unreliable, but within a second after it is reliable again', async () => {
    await accountWith('h1');
    let isSure = false;
    const clock: HoldExpiryPorts['clock'] = Object.create(time, { isReliable: { value: () => isSure } });
    start({ clock });
    await time.advance(10 * MINUTE);
    expect(await ended()).toEqual([]);
    isSure = true;
    await time.advance(1_000);
    expect(await ended()).toEqual(['h1']);
  });

  test('returns its amount to the account when it is ended', async () => {
    const id = await accountWith('h1');
    start();
    await time.advance(2 * MINUTE);
    const again = {
      holdId: 'h2',
      keyId: 'k',
      minAmount: parseUsd(1),
      maxAmount: parseUsd(1),
      expiresAt: time.fromNow(MINUTE),
      query,
    };
    const { events } = await accounts.run(id, { type: 'HoldFunds', data: { ...again, at: time.now() } }, TEST_CAUSE);
    expect(events).toHaveLength(1);
  });

  test('is ended once, even if the read model still returns it', async () => {
    const id = await accountWith('h1');
    start({ findOverduePayers: async () => [`account-${id}`] });
    await time.advance(10 * MINUTE);
    expect(await ended()).toEqual(['h1']);
  });

  test('is not ended after it was settled, even if the read model returns it', async () => {
    const id = await accountWith('h1', 'h2');
    await accounts.run(id, { type: 'SettleHold', data: { holdId: 'h1', charge, at: time.now() } }, TEST_CAUSE);
    start({ findOverduePayers: async () => [`account-${id}`] });
    await time.advance(2 * MINUTE);
    expect(await ended()).toEqual(['h2']);
  });

  test('is ended once by several concurrent sweeps', async () => {
    const holds = Array.from({ length: 40 }, (_, i) => `h${i}`);
    for (let i = 0; i < holds.length; i += 8) await accountWith(...holds.slice(i, i + 8));
    for (let i = 0; i < 4; i++) start();
    await time.advance(2 * MINUTE);
    expect((await ended()).toSorted()).toEqual(holds.toSorted());
    expect(alarms).toEqual([]);
  });

  test('is ended by another process if the first one stops during its sweep', async () => {
    for (const hold of ['h1', 'h2', 'h3']) await accountWith(hold);
    await time.advance(2 * MINUTE);
    const first = new AbortController();
    const path = writePath();
    const stopsAfterOne: Accounts = {
      run: async (...command) => {
        first.abort();
        return path.run(...command);
      },
    };
    start({ payers: payersOf(stopsAfterOne), signal: first.signal });
    await Promise.all(running);
    expect(await ended()).toEqual(['h1']);
    start();
    await time.advance(1_000);
    expect(await ended()).toEqual(['h1', 'h2', 'h3']);
  });
});

describe('a hold of a process', () => {
  const SEEMS_DEAD_MS = 10_000;

  test('is not ended before its expiry while the process is alive', async () => {
    await accountOf('a', 'h1');
    start();
    await time.advance(MINUTE - 1);
    expect(await ended()).toEqual([]);
  });

  test('is ended after its process was stale for ten seconds; holds of other processes are not', async () => {
    await accountOf('a', 'h1', 'h2');
    await accountOf('b', 'h3');
    await accountWith('h4');
    dead = ['a'];
    start();
    await time.advance(SEEMS_DEAD_MS - 1);
    expect(await ended()).toEqual([]);
    await time.advance(1_000);
    expect(await ended()).toEqual(['h1', 'h2']);
    expect(alarms).toEqual([]);
  });

  test('is not ended if the process is stale several times for less than ten seconds', async () => {
    await accountOf('a', 'h1');
    start();
    for (let i = 0; i < 5; i++) {
      dead = ['a'];
      await time.advance(SEEMS_DEAD_MS - 500);
      dead = [];
      await time.advance(500);
    }
    expect(await ended()).toEqual([]);
  });

  test('is ended only ten seconds after a failed check, which resets the count of stale checks', async () => {
    await accountOf('a', 'h1');
    let away = false;
    start({ findStaleProcesses: async () => (away ? Promise.reject(new Error('away')) : ['a']) });
    await time.advance(SEEMS_DEAD_MS - 500);
    away = true;
    await time.advance(500);
    away = false;
    await time.advance(SEEMS_DEAD_MS - 500);
    expect(await ended()).toEqual([]);
    expect(alarms).toEqual(['stale processes could not be found; retrying']);
    await time.advance(1_000);
    expect(await ended()).toEqual(['h1']);
  });

  test('is ended at its expiry even if stale processes cannot be found', async () => {
    await accountOf('a', 'h1');
    start({ findStaleProcesses: () => Promise.reject(new Error('away')) });
    await time.advance(MINUTE + 500);
    expect(await ended()).toEqual(['h1']);
  });

  test('is ended even if it appears after its process was found dead', async () => {
    dead = ['a'];
    start();
    await time.advance(2 * SEEMS_DEAD_MS);
    await accountOf('a', 'h1');
    await time.advance(5_500);
    expect(await ended()).toEqual(['h1']);
  });

  test('is not ended by a delayed command if the process has returned and placed it since', async () => {
    const account = await accountOf('a', 'h1');
    const path = streams().accounts;
    dead = ['a'];
    const run: Accounts['run'] = async (...command) => {
      dead = [];
      await placeHold(account, 'h3', 'a');
      return path.run(...command);
    };
    start({ payers: payersOf({ run }) });
    await time.advance(SEEMS_DEAD_MS + 500);
    expect(await ended()).toEqual(['h1']);
  });

  test('is ended once by several concurrent sweeps with a lagging read model', async () => {
    const payer = `account-${await accountOf('a', 'h1', 'h2')}`;
    dead = ['a'];
    for (let i = 0; i < 3; i++) start({ findPayersByOwner: async () => [{ payer, owner: 'a' }] });
    await time.advance(2 * SEEMS_DEAD_MS);
    expect(await ended()).toEqual(['h1', 'h2']);
  });

  test('does not block the holds of other accounts if its own account is broken', async () => {
    const [bad] = [await accountOf('a', 'h1'), await accountOf('a', 'h2')];
    const path = writePath();
    dead = ['a'];
    const run: Accounts['run'] = (id, ...more) =>
      id === bad ? Promise.reject(new Error('damaged')) : path.run(id, ...more);
    start({ payers: payersOf({ run }) });
    await time.advance(SEEMS_DEAD_MS + 500);
    expect(await ended()).toEqual(['h2']);
    expect(alarms).toContain(`the holds of account-${bad} could not be ended; retrying`);
  });
});

describe('a failed sweep', () => {
  test('does not block other accounts, and is retried for the failed one', async () => {
    const [bad, good] = [await accountWith('h1'), await accountWith('h2')];
    await time.advance(2 * MINUTE);
    const path = writePath();
    let broken = true;
    const run: Accounts['run'] = (id, ...more) =>
      broken && id === bad ? Promise.reject(new Error('damaged')) : path.run(id, ...more);
    start({ payers: payersOf({ run }) });
    await time.advance(1_000);
    expect(await ended()).toEqual(['h2']);
    expect(good).not.toBe(bad);
    expect(alarms).toContain(`the holds of account-${bad} could not be ended; retrying`);
    broken = false;
    await time.advance(1_000);
    expect(await ended()).toEqual(['h2', 'h1']);
  });

  test('is retried if the read model is unavailable', async () => {
    await accountWith('h1');
    await time.advance(2 * MINUTE);
    let failures = 3;
    start({ findOverduePayers: (now) => (failures-- > 0 ? Promise.reject(new Error('away')) : openHoldsPast(now)) });
    await time.advance(2_000);
    expect(alarms).toHaveLength(3);
    expect(await ended()).toEqual(['h1']);
  });

  test('is reported if the account does not exist', async () => {
    const run: Accounts['run'] = () => Promise.reject(new Rejection('account_not_found', 'Account not found'));
    start({ payers: payersOf({ run }), findOverduePayers: async () => ['account-nobody'] });
    await time.advance(400);
    expect(alarms).toEqual(['the holds of account-nobody could not be ended; retrying']);
  });
});
