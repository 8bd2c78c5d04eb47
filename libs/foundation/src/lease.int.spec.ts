import { spawn } from 'node:child_process';
import path from 'node:path';
import timers, { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import type { Lease } from '#kernel';
import { createMigratedDatabase, extendDelay, replaceDelays, type TestDatabase, waitUntil } from '#testing';
import { leaseContract } from '../../testing/src/contracts/leases.ts';
import { issueFencingToken, LeaseStatus, listUnheldLeases, runWhileLeader } from './lease.ts';
import type { WorkProbe } from './stall-detector.ts';

/** Lease duration for tests that wait until a lease expires. */
const SHORT_MS = 3_000;
/** Lease duration for tests in which the lease must not expire. The test decides when there are heartbeats. */
const LONG_MS = 3_600_000;
const HEARTBEAT_INTERVAL_MS = LONG_MS / 4;
/** How often standbys try to acquire the lease and leaders check whether they can work, and how often they do so here. */
const INTERVALS_MS: readonly number[] = [500, 1_000];
const TEST_INTERVAL_MS = 20;
const BUILT = path.resolve(import.meta.dirname, '../../../dist/libs/foundation/src/lease.js');

/** A process that competes for a lease, and only records whether it leads. */
interface Contender {
  /** The leases that it has held. */
  readonly turns: readonly Lease[];
  readonly status: LeaseStatus;
  readonly leads: () => boolean;
  readonly problems: readonly string[];
  resign(): Promise<void>;
}

let database: TestDatabase;
let pool: pg.Pool;
let contenders: Contender[] = [];
let name: string;
let names = 0;
let restoreDelays: () => void;
beforeAll(async () => {
  const pause = timers.setTimeout;
  restoreDelays = replaceDelays((ms, ...rest) => pause(INTERVALS_MS.includes(ms) ? TEST_INTERVAL_MS : ms, ...rest));
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 1 });
});
beforeEach(() => {
  name = `office ${++names}`;
});
afterEach(async () => {
  await Promise.all(contenders.map((each) => each.resign()));
  contenders = [];
});
afterAll(async () => {
  restoreDelays();
  await pool.end();
  await database.drop();
});

interface Conditions {
  readonly what?: string;
  readonly lengthMs?: number;
  /** An additional task; it receives how many leases the contender has held, with this one. */
  readonly beside?: (turn: number) => Promise<void>;
  readonly probe?: WorkProbe;
}

function contend({ what = name, lengthMs, beside = async () => {}, probe }: Conditions = {}): Contender {
  const stop = new AbortController();
  const problems: string[] = [];
  const turns: Lease[] = [];
  const status = new LeaseStatus();
  let leads = false;
  const lead = async ({ signal }: Lease) => {
    leads = true;
    await delay(60_000, undefined, { signal }).catch(() => {});
    leads = false;
  };
  const leading = runWhileLeader(
    {
      databaseUrl: database.url,
      name: what,
      signal: stop.signal,
      reportError: (problem) => void problems.push(problem),
      leaseStatus: status,
      ...(lengthMs === undefined ? {} : { durationMs: lengthMs }),
      ...(probe ? { probe, stallLimits: { maxStallMs: 0 } } : {}),
    },
    (lease) => [lead(lease), beside(turns.push(lease))],
  );
  const resign = async () => {
    stop.abort();
    await leading;
  };
  const contender = { turns, status, leads: () => leads, problems, resign };
  contenders.push(contender);
  return contender;
}

async function query(sql: string, values: unknown[] = []): Promise<number> {
  const client = new pg.Client({ connectionString: database.superuserUrl });
  await client.connect();
  try {
    return (await client.query(sql, values)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

/** Counts the connected contenders. */
const connected = (what = name) =>
  query('select from pg_stat_activity where application_name = $1', [`countinghouse-lease-${what}/${WRITE_CONTRACT}`]);

/** Starts a leader, then a standby. */
async function leaderAndStandby(conditions?: Conditions) {
  const leader = contend(conditions);
  await waitUntil(leader.leads);
  const standby = contend(conditions);
  await waitUntil(async () => (await connected()) === 2);
  return { leader, standby };
}

/** Waits until a heartbeat has extended the lease again, which this function shortens. */
async function waitForHeartbeat({ started, end }: ReturnType<typeof extendDelay>): Promise<void> {
  await started;
  await query(`update leases set ends_at = now() + interval '1 minute' where name = $1`, [name]);
  end();
  const extended = "select from leases where name = $1 and ends_at > now() + interval '2 minutes'";
  await waitUntil(async () => (await query(extended, [name])) === 1);
}

const tokenOf = (contender: Contender) => contender.turns.at(-1)?.token ?? Number.NaN;

leaseContract('in PostgreSQL', async () => ({
  runWhileLeader: (options, work) => runWhileLeader({ databaseUrl: database.url, ...options }, work),
  waitUntil,
  countCandidates: connected,
  disconnectLeader: async (leaseName) => {
    await query('select pg_terminate_backend(backend) from leases where name = $1 and ends_at > now()', [leaseName]);
  },
  reassign: async (leaseName) => {
    await query('update leases set held = held + 1, drawn = drawn + 1 where name = $1', [leaseName]);
  },
  issueFencingToken: (leaseName) => issueFencingToken(database.url, leaseName),
  listUnheldLeases: (leaseNames) => listUnheldLeases(pool, leaseNames),
  blockTable: async () => {
    const locker = new pg.Client({ connectionString: database.superuserUrl });
    await locker.connect();
    await locker.query('begin');
    // Unlike a row lock, a table lock takes no transaction id. Log readers of other tests would wait for such an id.
    await locker.query('lock table leases in share row exclusive mode');
    return async () => {
      await locker.query('rollback');
      await locker.end();
    };
  },
}));

describe('a lease', () => {
  test('lasts as long as there are heartbeats, regardless of the wall clock of the process', async () => {
    const heartbeats = extendDelay(HEARTBEAT_INTERVAL_MS);
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 86_400_000);
    const { leader, standby } = await leaderAndStandby({ lengthMs: LONG_MS });
    jest.spyOn(Date, 'now').mockReturnValue(0);
    await waitForHeartbeat(heartbeats);
    jest.restoreAllMocks();
    expect([leader.turns.length, standby.turns.length]).toEqual([1, 0]);
    expect(leader.turns[0]?.isHeld()).toBe(true);
  });
});

describe('a leader that cannot work', () => {
  const fails: WorkProbe = () => Promise.reject(new Error('the pool cannot connect'));
  const works: WorkProbe = async () => new Map();

  test('releases its lease to a standby although it can renew it, and stays unable while the standby leads', async () => {
    const leader = contend({ probe: fails });
    await waitUntil(leader.leads);
    const standby = contend({ probe: works });
    await waitUntil(standby.leads);
    await waitUntil(() => leader.problems.length > 0);
    expect(leader.problems[0]).toBe(`${name} does not hold its lease; retrying`);
    expect([leader.status.unable, standby.status.unable]).toEqual([[name], []]);
    expect(await listUnheldLeases(pool, [name, 'vacant'])).toEqual(['vacant']);
  });

  test('releases its lease while a task of it still hangs', async () => {
    const hanging = Promise.withResolvers<void>();
    const leader = contend({ probe: fails, beside: () => hanging.promise });
    await waitUntil(leader.leads);
    const standby = contend({ probe: works });
    await waitUntil(standby.leads);
    hanging.resolve();
  });

  test('acquires the lease again if no other process competes for it, and is unable until a probe succeeds', async () => {
    const roles: ('unable' | 'leading')[] = [];
    const leader: Contender = contend({
      probe: () => {
        roles.push(leader.status.unable.length > 0 ? 'unable' : 'leading');
        return roles.length === 1 ? fails() : works();
      },
    });
    // As if the lease had been free for a minute.
    const isFree = `update leases set ends_at = ends_at - interval '1 minute' where name = $1 and ends_at <= now()`;
    await waitUntil(async () => roles.length === 1 && (await query(isFree, [name])) === 1);
    await waitUntil(() => roles.length >= 3);
    expect([roles.slice(0, 3), leader.turns.length]).toEqual([['leading', 'unable', 'leading'], 2]);
  });
});

describe('a leader in another process', () => {
  /** Starts a process that prints the token of each of its leases when the lease starts and when it ends. */
  async function startProcess() {
    const script = `
      import { runWhileLeader } from ${JSON.stringify(pathToFileURL(BUILT).href)};
      const leadership = { databaseUrl: process.env.URL, name: process.env.NAME, durationMs: ${SHORT_MS}, reportError() {}, signal: new AbortController().signal };
      await runWhileLeader(leadership, (lease) => [new Promise((resolve) => {
        console.log('leads', lease.token);
        lease.signal.addEventListener('abort', () => { console.log('ended', lease.token); resolve(); });
      })]);`;
    const env = { PATH: process.env.PATH, URL: database.url, NAME: name };
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      env,
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (piece) => {
      said += piece;
    });
    await waitUntil(() => said.includes('leads'));
    const ended = new Promise((resolve) => child.once('close', resolve));
    return { child, ended, said: () => said.trim().split('\n') };
  }

  test('loses its lease while it is suspended, and detects that when it continues', async () => {
    const { child, ended, said } = await startProcess();
    const standby = contend({ lengthMs: SHORT_MS });
    child.kill('SIGSTOP');
    await waitUntil(standby.leads);
    child.kill('SIGCONT');
    await waitUntil(() => said().length === 2);
    const [[, first], [what, second]] = said().map((line) => line.split(' ')) as [string[], string[]];
    expect([what, second]).toEqual(['ended', first]);
    expect(tokenOf(standby)).toBeGreaterThan(Number(first));
    expect(standby.leads()).toBe(true);
    child.kill('SIGKILL');
    await ended;
  });

  test('loses its lease long before the expiry if it is killed', async () => {
    const { child, ended } = await startProcess();
    await query(`update leases set ends_at = now() + interval '1 hour' where name = $1`, [name]);
    const standby = contend();
    child.kill('SIGKILL');
    await ended;
    await waitUntil(standby.leads);
  });
});

describe('fencing tokens', () => {
  test('are issued above the token of the holder, whose lease continues', async () => {
    const heartbeats = extendDelay(HEARTBEAT_INTERVAL_MS);
    const { leader, standby } = await leaderAndStandby({ lengthMs: LONG_MS });
    const drawn = await issueFencingToken(database.url, name);
    expect(drawn).toBeGreaterThan(tokenOf(leader));
    await waitForHeartbeat(heartbeats);
    expect(leader.turns[0]?.isHeld()).toBe(true);
    await leader.resign();
    await waitUntil(standby.leads);
    expect(tokenOf(standby)).toBeGreaterThan(drawn);
  });

  test('increase even if the clock of the database moves back', async () => {
    await issueFencingToken(database.url, name);
    const ahead = 8_000_000_000_000_000;
    await query('update leases set drawn = $2 where name = $1', [name, ahead]);
    expect(await issueFencingToken(database.url, name)).toBe(ahead + 1);
  });

  test('increase even if the row of the lease was lost', async () => {
    const before = await issueFencingToken(database.url, name);
    await query('delete from leases where name = $1', [name]);
    expect(await issueFencingToken(database.url, name)).toBeGreaterThan(before);
  });
});

test('a standby reports an unreachable database, and ends when its signal aborts', async () => {
  const stop = new AbortController();
  const problems: string[] = [];
  const databaseUrl = Object.assign(new URL(database.url), { port: '1' }).href;
  const leading = runWhileLeader(
    { databaseUrl, name, signal: stop.signal, reportError: (problem) => void problems.push(problem) },
    () => [],
  );
  await waitUntil(() => problems.length > 0);
  stop.abort();
  await leading;
  expect(problems[0]).toBe(`${name} does not hold its lease; retrying`);
});
