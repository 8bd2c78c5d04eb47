import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import { createMigratedDatabase, NetworkLink, replaceDelays, type TestDatabase, waitUntil } from '#testing';
import { presenceContract } from '../../testing/src/contracts/presence.ts';
import { findStaleProcesses, ProcessPresence } from './process-presence.ts';
import { StartDeadline } from './start-deadline.ts';
import { StartError } from './start-error.ts';

/** Lifetime of a row for tests that wait until the database counts as unreachable. */
const SHORT_MS = 800;
/** Lifetime of a row that does not expire during a test. */
const LONG_MS = 3_600_000;

let database: TestDatabase;
let pool: pg.Pool;
let present: ProcessPresence[] = [];
let problems: string[] = [];
let links: NetworkLink[] = [];
const restorers: (() => void)[] = [];
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.superuserUrl, max: 2 });
});
afterEach(async () => {
  for (const restore of restorers.splice(0)) restore();
  await Promise.all(present.map((each) => each.close()));
  await Promise.all(links.map((each) => each.close()));
  links = [];
  await pool.query('delete from processes');
  present = [];
  problems = [];
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const createDeadline = (milliseconds = 60_000) =>
  new StartDeadline(milliseconds, (sentence) => void problems.push(sentence));

async function appear(lengthMs?: number): Promise<ProcessPresence> {
  const alarm = (problem: string) => void problems.push(problem);
  const length = lengthMs === undefined ? {} : { durationMs: lengthMs };
  const presence = await ProcessPresence.start({
    databaseUrl: database.url,
    role: 'gateway',
    reportError: alarm,
    startDeadline: createDeadline(),
    ...length,
  });
  present.push(presence);
  return presence;
}

const dead = () => findStaleProcesses(pool);
const disconnect = ({ id }: ProcessPresence) =>
  pool.query('select pg_terminate_backend(backend) from processes where id = $1', [id]);
const ends = async ({ id }: ProcessPresence): Promise<number> =>
  (await pool.query('select ends_at from processes where id = $1', [id])).rows[0].ends_at.getTime();

/** Makes processes wait for the test between their heartbeats. @returns a function that lets each send one */
function holdHeartbeats(): () => void {
  const waiting = new Set<() => void>();
  const restore = replaceDelays(async (_milliseconds, _value, { signal } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.add(resolve);
    signal?.addEventListener('abort', () => reject(signal.reason));
    await promise;
  });
  restorers.push(restore);
  return () => {
    for (const resume of waiting) resume();
    waiting.clear();
  };
}

/** Lets the row of the process expire, by the clocks of the process and of the database. */
async function expire({ id }: ProcessPresence): Promise<void> {
  const { now } = performance;
  performance.now = () => now.call(performance) + LONG_MS;
  restorers.push(() => {
    performance.now = now;
  });
  await pool.query('update processes set ends_at = now() where id = $1', [id]);
}

/** Makes all writes to the row of the process fail from now on. */
async function cutOff({ id }: ProcessPresence): Promise<void> {
  await pool.query(`alter table processes add constraint cut_off check (id <> '${id}') not valid`);
}
const reconnect = () => pool.query('alter table processes drop constraint cut_off');

/** Opens a connection to the database that a test can interrupt. `start` registers a process through it. */
async function openSlowLink() {
  const link = await NetworkLink.open(Number(new URL(database.url).port));
  links.push(link);
  const databaseUrl = Object.assign(new URL(database.url), { host: link.address }).href;
  const reportError = (problem: string) => void problems.push(problem);
  const start = (startDeadline: StartDeadline) =>
    ProcessPresence.start({ databaseUrl, role: 'gateway', reportError, durationMs: SHORT_MS, startDeadline });
  return { link, start };
}

presenceContract('in PostgreSQL', async () => {
  const sendHeartbeats = holdHeartbeats();
  const get = (id: string) => present.find((each) => each.id === id) as ProcessPresence;
  const age = "update processes set ends_at = now() - interval '25 hours' where id = $1";
  return {
    join: async () => {
      const joined = await appear(LONG_MS);
      return {
        id: joined.id,
        getProcessId: () => joined.getProcessId(),
        get isDatabaseWritable() {
          return joined.isDatabaseWritable;
        },
        close: () => {
          present = present.filter((each) => each !== joined);
          return joined.close();
        },
      };
    },
    findStaleProcesses: dead,
    sendHeartbeats: async (condition) => {
      sendHeartbeats();
      await waitUntil(condition);
    },
    disconnect: async (id) => {
      await disconnect(get(id));
      await waitUntil(async () => (await dead()).length > 0);
    },
    interruptHeartbeats: async (id) => {
      await cutOff(get(id));
      sendHeartbeats();
      await waitUntil(() => problems.length > 0);
      expect(problems).toEqual(['heartbeat failed; retrying']);
      await reconnect();
      return async () => {}; // no heartbeat is sent until the test says so
    },
    expire: (id) => expire(get(id)),
    age: async (id) => void (await pool.query(age, [id])),
    hasRow: async (id) => (await pool.query('select from processes where id = $1', [id])).rowCount === 1,
  };
});

describe('a process', () => {
  test('is registered from the start under its own id', async () => {
    const [one, other] = [await appear(), await appear()];
    expect(one.id).toMatch(/^gateway-[0-9a-f]{8}$/);
    expect(other.id).not.toBe(one.id);
    expect((await pool.query('select id from processes')).rows).toHaveLength(2);
    expect(await dead()).toEqual([]);
    expect(one.getProcessId()).toBe(one.id);
  });

  test('counts as alive as long as there are heartbeats', async () => {
    const sendHeartbeats = holdHeartbeats();
    const one = await appear(LONG_MS);
    const first = await ends(one);
    sendHeartbeats();
    await waitUntil(async () => (await ends(one)) > first);
    expect(await dead()).toEqual([]);
    expect(one.getProcessId()).toBe(one.id);
  });

  test('ends its row and its connection when its presence is closed', async () => {
    const one = await appear();
    present = [];
    await one.close();
    expect(await dead()).toEqual([one.id]);
    const open = 'select from pg_stat_activity where application_name = $1';
    await waitUntil(async () => (await pool.query(open, [`countinghouse-${one.id}/${WRITE_CONTRACT}`])).rowCount === 0);
  });

  test('is registered although the database responds more slowly than the first attempts wait', async () => {
    const { link, start } = await openSlowLink();
    link.interrupt();
    const starting = start(createDeadline());
    await waitUntil(() => problems.length > 0);
    link.restore();
    const presence = await starting;
    present.push(presence);
    expect(problems[0]).toMatch(/^the start is waiting for the registration of this process in the database /);
    expect((await pool.query('select id from processes')).rows).toEqual([{ id: presence.id }]);
    expect(presence.getProcessId()).toBe(presence.id);
  });

  test('cannot start, with one sentence as the reason, if the database does not respond until the deadline', async () => {
    const { link, start } = await openSlowLink();
    link.interrupt();
    const error = await start(createDeadline(2 * SHORT_MS)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StartError);
    expect((error as Error).message).toMatch(
      /^The start ended after 2 s \(START_TIMEOUT_MS\) because it was still waiting for the registration of this process in the database \([^.]+\)\.$/,
    );
  });

  test('cannot start if the database rejects the connection, without another attempt', async () => {
    const databaseUrl = Object.assign(new URL(database.url), { password: 'wrong' }).href;
    const reportError = (problem: string) => void problems.push(problem);
    const startDeadline = createDeadline();
    await expect(
      ProcessPresence.start({ databaseUrl, role: 'gateway', reportError, startDeadline }),
    ).rejects.toMatchObject({
      code: '28P01',
    });
    expect(problems).toEqual([]);
  });
});
