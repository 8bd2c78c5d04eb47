import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '#testing';
import { leadWhile } from './leader.ts';

const DEADLINE_MS = 4_000;
const LOOK_AGAIN_MS = 5;

/** One that wants to lead, and does nothing then but to say so. */
interface Contender {
  /** How often it has had its turn. */
  readonly turns: () => number;
  readonly leads: () => boolean;
  readonly problems: readonly string[];
  resign(): Promise<void>;
}

let database: TestDatabase;
let contenders: Contender[] = [];
let name: string;
let names = 0;
beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(() => {
  name = `office ${++names}`;
});
afterEach(async () => {
  await Promise.all(contenders.map((each) => each.resign()));
  contenders = [];
});
afterAll(() => database.drop());

function contend(what = name, work: (turn: number) => void = () => {}): Contender {
  const stop = new AbortController();
  const problems: string[] = [];
  let turns = 0;
  let leads = false;
  const leading = leadWhile(
    database.url,
    what,
    stop.signal,
    async (signal) => {
      work(++turns);
      leads = true;
      await delay(60_000, undefined, { signal }).catch(() => {});
      leads = false;
    },
    (problem) => void problems.push(problem),
  );
  const resign = async () => {
    stop.abort();
    await leading;
  };
  const contender = { turns: () => turns, leads: () => leads, problems, resign };
  contenders.push(contender);
  return contender;
}

async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!(await happened())) {
    if (performance.now() > deadline) throw new Error('what was waited for did not happen');
    await delay(LOOK_AGAIN_MS);
  }
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

/** Contenders of an office that are connected, and so have been refused it or hold it. */
const connected = (what = name) =>
  query('select from pg_stat_activity where application_name = $1', [`countinghouse-lead-${what}`]);

/** Breaks the connection of the one that leads. */
const disconnect = () =>
  query(
    `select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
        and pid in (select pid from pg_stat_activity where application_name = $1)`,
    [`countinghouse-lead-${name}`],
  );

/** One leads; another has come, and stands by. */
async function leaderAndStandby() {
  const leader = contend();
  await until(leader.leads);
  const standby = contend();
  await until(async () => (await connected()) === 2);
  return { leader, standby };
}

describe('of those who want to lead', () => {
  test('one does, and the others stand by', async () => {
    const all = [contend(), contend(), contend()];
    await until(() => all.some((each) => each.leads()));
    await until(async () => (await connected()) === 3);
    expect(all.map((each) => each.turns()).toSorted()).toEqual([0, 0, 1]);
  });

  test('another takes over when the first resigns', async () => {
    const { leader, standby } = await leaderAndStandby();
    expect(standby.leads()).toBe(false);
    await leader.resign();
    await until(standby.leads);
    expect([leader.turns(), standby.turns()]).toEqual([1, 1]);
  });

  test('another takes over when the first loses its connection, which is told to it at once', async () => {
    const { leader, standby } = await leaderAndStandby();
    expect(await disconnect()).toBe(1);
    await until(() => !leader.leads());
    await until(() => standby.leads() || leader.leads());
    expect([leader, standby].filter((each) => each.leads())).toHaveLength(1);
  });

  test('the one that lost its connection stands by again, and leads again when the other resigns', async () => {
    const { leader, standby } = await leaderAndStandby();
    await disconnect();
    await until(() => !leader.leads());
    if (!standby.leads()) await until(() => standby.leads() || leader.leads());
    const [now, next] = leader.leads() ? [leader, standby] : [standby, leader];
    await until(async () => (await connected()) === 2);
    expect(next.leads()).toBe(false);
    await now.resign();
    await until(next.leads);
  });

  test('one whose work fails says so, and tries again', async () => {
    const contender = contend(name, (turn) => {
      if (turn === 1) throw new Error('a bad day');
    });
    await until(contender.leads);
    expect(contender.turns()).toBe(2);
    expect(contender.problems).toEqual([`${name} lost its turn; trying again`]);
  });

  test('one leads each of two offices', async () => {
    const both = [contend(`${name} a`), contend(`${name} b`)];
    await until(() => both.every((each) => each.leads()));
  });

  test('none leaves a connection behind', async () => {
    const { leader, standby } = await leaderAndStandby();
    await Promise.all([standby.resign(), leader.resign()]);
    await until(async () => (await connected()) === 0);
  });

  test('one that cannot reach the database says so, and ends when it is told to', async () => {
    const stop = new AbortController();
    const problems: string[] = [];
    const nowhere = Object.assign(new URL(database.url), { port: '1' }).href;
    const leading = leadWhile(
      nowhere,
      name,
      stop.signal,
      async () => {},
      (problem) => void problems.push(problem),
    );
    await until(() => problems.length > 0);
    stop.abort();
    await leading;
    expect(problems).toEqual([`${name} lost its turn; trying again`]);
  });
});
