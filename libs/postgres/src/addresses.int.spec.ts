import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { connectClient, openPool, replaceDatabaseAddress } from '#postgres';
import { createTestDatabase, type TestDatabase } from '#testing';

let database: TestDatabase;
let admin: pg.Client;
let users: readonly [before: string, after: string];
const opened: { end(): Promise<unknown> }[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({ connectionString: database.superuserUrl });
  await admin.connect();
  const suffix = randomUUID().replaceAll('-', '');
  users = [`before_${suffix}`, `after_${suffix}`];
  const { password } = new URL(database.url);
  for (const user of users) await admin.query(`create role ${user} password '${decodeURIComponent(password)}'`);
});

afterEach(async () => {
  for (const connection of opened.splice(0)) await connection.end();
  for (const user of users) await admin.query(`drop role ${user}`);
  await admin.end();
  await database.drop();
});

const toAddress = (user: string) => Object.assign(new URL(database.url), { username: user }).href;
const accept = (user: string) => admin.query(`alter role ${user} login`);
const reject = (user: string) => admin.query(`alter role ${user} nologin`);

function openTestPool(connectionString: string): pg.Pool {
  const pool = openPool({ connectionString, name: 'test' });
  opened.push(pool);
  return pool;
}

async function findUser(connection: Pick<pg.Pool, 'query'>): Promise<string> {
  return (await connection.query<{ user: string }>('select session_user as user')).rows[0]?.user ?? '';
}

/** Queries on several connections at once. */
const findUsers = async (pool: pg.Pool) => new Set(await Promise.all(Array.from({ length: 5 }, () => findUser(pool))));

test.each(['before', 'after'] as const)(
  'of two credentials, the one that the server accepts is used: %s',
  async (one) => {
    const [user = ''] = one === 'before' ? users : users.toReversed();
    await accept(user);
    const addresses = `${toAddress(users[0])}\n${toAddress(users[1])}`;

    const pool = openTestPool(addresses);
    const client = await connectClient({ connectionString: addresses, name: 'test' });
    opened.push(client);

    expect(await findUsers(pool)).toEqual(new Set([user]));
    expect(await findUser(client)).toBe(user);
    const connection = await pool.connect();
    expect(await findUser(connection as never)).toBe(user);
    connection.release();
  },
);

test('a credential that the server starts to reject is replaced by the other, and open connections remain', async () => {
  await accept(users[0]);
  const pool = openTestPool(`${toAddress(users[0])} ${toAddress(users[1])}`);
  const before = await pool.connect();

  await accept(users[1]);
  await reject(users[0]);

  expect(await findUsers(pool)).toEqual(new Set([users[1]]));
  expect(await findUser(before as never)).toBe(users[0]);
  before.release();
});

test('new connections use a replaced address, and open connections remain', async () => {
  await accept(users[0]);
  const original = toAddress(users[0]);
  const pool = openTestPool(original);
  const before = await pool.connect();

  await accept(users[1]);
  replaceDatabaseAddress(original, toAddress(users[1]));
  await reject(users[0]);

  const client = await connectClient({ connectionString: original, name: 'test' });
  opened.push(client);
  expect(await findUser(client)).toBe(users[1]);
  expect(await findUsers(pool)).toEqual(new Set([users[1]]));
  expect(await findUser(before as never)).toBe(users[0]);
  before.release();
});

test('if the server rejects all credentials, an attempt fails with its error, and a later one succeeds', async () => {
  const pool = openTestPool(`${toAddress(users[0])} ${toAddress(users[1])}`);

  await expect(pool.query('select 1')).rejects.toMatchObject({ code: '28000' });
  await accept(users[0]);

  expect(await findUser(pool)).toBe(users[0]);
});

test('a connection has its own name, whatever an address says', async () => {
  await accept(users[1]);
  const named = users.map((user) => `${toAddress(user)}?application%5Fname=mine&fallback_application_name=mine`);
  const address = `${named.join(' ')}&options=-c%20application_name%3Dmine`;
  const client = await connectClient({ connectionString: address, name: 'test' });
  opened.push(client);

  for (const connection of [client, openTestPool(address)]) {
    const { rows } = await connection.query<{ application_name: string }>('show application_name');
    expect(rows).toEqual([{ application_name: 'countinghouse-test' }]);
  }
});
