import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type AccountCommand, accountCodec, accountDecider, UNRESTRICTED_ACCESS } from '#domain';
import { PostgresEventStore, PostgresSnapshots } from '#eventstore';
import {
  createCommandRunner,
  formatUsd,
  NO_STREAM,
  parseUsd,
  type Snapshot,
  type SnapshotStore,
  type StoredEvent,
  toPicoUsd,
} from '#kernel';
import { createCharge, createMigratedDatabase, createTestRuntime, TEST_CAUSE, type TestDatabase } from '#testing';

/** Requests of the account. Each has two events: one when it holds money, and one when it settles. */
const REQUESTS = 2_500;
const SNAPSHOT_EVERY = 1_000;
const MAX_GROUP = 256;

const ACCOUNT = randomUUID();
const STREAM = `account-${ACCOUNT}`;
/** Available USD at the end: each request was charged 7 pico-USD. */
const LEFT = formatUsd(toPicoUsd(parseUsd('9') - 7n * BigInt(REQUESTS)));

const at = '2026-11-20T12:00:00.000Z';
const expiresAt = '2026-11-20T12:10:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const charge = createCharge({ price: '7', cost: '5' });
const key = {
  keyId: 'k',
  name: 'Default',
  hash: 'h',
  secret: { key: '', box: '' },
  ...UNRESTRICTED_ACCESS,
  limit: parseUsd('100').toString(),
  resetPeriod: 'daily' as const,
  expireAt: null,
};

const hold = (holdId: string): AccountCommand => ({
  type: 'HoldFunds',
  data: { holdId, keyId: 'k', minAmount: parseUsd('1'), maxAmount: parseUsd('1'), expiresAt, query, at },
});
const settle = (holdId: string): AccountCommand => ({ type: 'SettleHold', data: { holdId, charge, at } });

/** Records after which revision each read starts, and how many events it returns. */
class CountingStore extends PostgresEventStore {
  reads: { after: number; facts: number }[] = [];

  override async *read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    const read = { after, facts: 0 };
    this.reads.push(read);
    for await (const batch of super.read(stream, after)) {
      read.facts += batch.length;
      yield batch;
    }
  }
}

/** Exposes the saves in the background, so that a test can await them. */
class WatchedSnapshots extends PostgresSnapshots {
  readonly saved: Promise<void>[] = [];

  override save(...args: Parameters<SnapshotStore['save']>): Promise<void> {
    const saving = super.save(...args);
    this.saved.push(saving);
    return saving;
  }
}

let database: TestDatabase;
let pool: pg.Pool;
let store: CountingStore;
let snapshots: WatchedSnapshots;
let kept: Snapshot;
let last: number;
const alarms: string[] = [];
const KEY = Buffer.alloc(32, 1);

/** Runs commands as a process that has just started. */
function runner(from: SnapshotStore = snapshots) {
  const alarm = (problem: string) => void alarms.push(problem);
  const runtime = createTestRuntime({ sleep: async () => {}, reportError: alarm });
  const codec = accountCodec;
  const account = { category: 'account', decider: accountDecider, store, runtime, snapshots: { store: from, codec } };
  const { run } = createCommandRunner(account);
  return (command: AccountCommand) => run(ACCOUNT, command, TEST_CAUSE);
}

/** Returns what the account can spend in USD, from the rejection of a larger hold. */
async function available(run = runner()): Promise<unknown> {
  const tooMuch = {
    holdId: 'h',
    keyId: null,
    minAmount: parseUsd('10'),
    maxAmount: parseUsd('10'),
    expiresAt,
    query,
    at,
  };
  const refused = await run({ type: 'HoldFunds', data: tooMuch }).catch((error) => error);
  return refused.details.affordable;
}

beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  store = new CountingStore({ connectionString: database.url });
  snapshots = new WatchedSnapshots(pool, [KEY]);
  const run = runner();
  await run({ type: 'OpenAccount', data: { key, at } });
  await run({
    type: 'AddCredit',
    data: { creditId: 'c', method: 'm', amount: parseUsd('9'), bonus: parseUsd('0'), at },
  });
  const requests = Array.from({ length: REQUESTS }, (_, request) => `h${request}`);
  await Promise.all(requests.flatMap((each) => [run(hold(each)), run(settle(each))]));
  await Promise.all(snapshots.saved);
  kept = (await snapshots.load(STREAM, accountCodec.version)) as Snapshot;
});

beforeEach(async () => {
  await Promise.all(snapshots.saved);
  await pool.query('delete from es.snapshots');
  await snapshots.save(STREAM, accountCodec.version, kept);
  last = (await store.readHead(STREAM))?.revision ?? NO_STREAM;
  store.reads = [];
  alarms.length = 0;
});

afterAll(async () => {
  await store.close();
  await pool.end();
  await database.drop();
});

const readsEverything = () => expect(store.reads).toEqual([{ after: NO_STREAM, facts: last + 1 }]);

describe('an account with thousands of events', () => {
  test('is loaded from its last snapshot and the few events after it', async () => {
    expect(await available()).toBe(LEFT);
    expect(last).toBeGreaterThanOrEqual(2 * REQUESTS);
    expect(store.reads).toEqual([{ after: kept.revision - 1, facts: 1 + last - kept.revision }]);
    expect(last - kept.revision).toBeLessThan(SNAPSHOT_EVERY + 2 * MAX_GROUP);
  });

  test('has the same state without a snapshot', async () => {
    await pool.query('delete from es.snapshots');
    expect(await available()).toBe(LEFT);
    readsEverything();
    expect(alarms).toEqual([]);
  });

  test('ignores a snapshot of another version and replaces it', async () => {
    await pool.query(`update es.snapshots set version = 'old', state = '{"available":"999"}'`);
    expect(await available()).toBe(LEFT);
    readsEverything();
    expect(alarms).toEqual([]);
    await Promise.all(snapshots.saved);
    expect(await snapshots.load(STREAM, 'old')).toBeUndefined();
    expect(await snapshots.load(STREAM, accountCodec.version)).toMatchObject({ revision: last });
  });

  test.each([
    ['the state null', null],
    ['a text as its state', 'damaged'],
    ['an empty state', {}],
    ['no holds, keys or credits', { status: 'open', available: '1', held: '0' }],
    ['an invalid amount', { status: 'open', available: 'much', held: '0', holds: [], keys: [], credits: [] }],
  ])('is folded from its events if its snapshot has %s', async (_, state) => {
    await pool.query('delete from es.snapshots');
    await snapshots.save(STREAM, accountCodec.version, { ...kept, state });
    expect(await available()).toBe(LEFT);
    readsEverything();
    expect(alarms).toEqual([`the snapshot of ${STREAM} could not be read`]);
  });

  test.each<[string, (snapshot: Snapshot) => Partial<Snapshot>]>([
    ['is ahead of its stream', () => ({ revision: 1_000_000, position: 1_000_000_000n })],
    ['ends with another event', () => ({ lastEventId: randomUUID() })],
    ['has another position in the log', ({ position }) => ({ position: position + 1n })],
  ])('is folded from its events if its snapshot %s, and that snapshot is replaced', async (_, different) => {
    const state = { ...(kept.state as object), available: '999000000000000' };
    await pool.query('delete from es.snapshots');
    await snapshots.save(STREAM, accountCodec.version, { ...kept, state, ...different(kept) });
    expect(await available()).toBe(LEFT);
    expect(alarms).toEqual([`the snapshot of ${STREAM} does not match its events`]);
    await Promise.all(snapshots.saved);
    expect(await snapshots.load(STREAM, accountCodec.version)).toMatchObject({ revision: last });
  });

  test('is folded from its events if snapshots are unavailable', async () => {
    const away: SnapshotStore = {
      load: () => Promise.reject(new Error('away')),
      save: () => Promise.reject(new Error('away')),
      drop: () => Promise.reject(new Error('away')),
    };
    expect(await available(runner(away))).toBe(LEFT);
    readsEverything();
  });

  test('replaces a damaged snapshot after the next command', async () => {
    await pool.query(`update es.snapshots set state = '{}'`); // makes its MAC invalid
    const key = { keyId: 'k', changes: { name: randomUUID().slice(0, 20) } };
    const { revision } = await runner()({ type: 'UpdateKey', data: { ...key, at } });
    await Promise.all(snapshots.saved);
    store.reads = [];
    expect(await available()).toBe(LEFT);
    expect(store.reads).toEqual([{ after: revision - 1, facts: 1 }]);
    expect(alarms).toHaveLength(1);
  });
});
