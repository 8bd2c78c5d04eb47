import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { type IdempotencyClaim, Secrets } from '#application';
import { eventStoreMigrations } from '#eventstore';
import { migrate } from '#foundation';
import { createMigratedDatabase, createTestDatabase, createTestRuntime, type TestDatabase } from '#testing';
import {
  type IdempotencyStoreOptions,
  idempotencyStoreContract,
} from '../../../testing/src/contracts/idempotency-store.ts';
import { contentMigrations } from './content-migrations.ts';
import { PostgresIdempotencyStore } from './idempotency-store.ts';
import { PostgresResponseStore } from './stored-responses.ts';

const RESPONSE = { status: 200, headers: { 'content-type': 'audio/mpeg' }, body: Buffer.from([0, 10, 255, 10]) };

let database: TestDatabase;
let pool: pg.Pool;
/** Each store has its own master key. */
const createStore = ({ confirmedLeaseMs, files }: IdempotencyStoreOptions) =>
  new PostgresIdempotencyStore(pool, new Secrets(createTestRuntime(), randomBytes(32)), files, confirmedLeaseMs);
const WITHOUT_FILES: IdempotencyStoreOptions = { confirmedLeaseMs: 60_000, files: { find: async () => undefined } };

let store: PostgresIdempotencyStore;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is closed
  store = createStore(WITHOUT_FILES);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const SHIFT_TIMES = `
  update gateway.answers
     set leased_until = leased_until - $1 * interval '1 ms', expires_at = expires_at - $1 * interval '1 ms'`;

const passTime = async (milliseconds: number): Promise<void> => {
  await pool.query(SHIFT_TIMES, [milliseconds]);
};

idempotencyStoreContract('in PostgreSQL', async (options) => ({
  store: createStore(options),
  passTime,
}));

async function claimKey(): Promise<IdempotencyClaim> {
  const requestId = randomUUID();
  const payer = `account-${randomUUID()}`;
  const claim = { payer, key: 'k', request: 'r', requestId, revision: 7, owner: requestId };
  await store.claim(claim);
  return claim;
}

test('an idempotency key is removed after its expiry while another transaction appends events', async () => {
  await migrate(database.url, eventStoreMigrations);
  const claim = await claimKey();
  await passTime(24 * 3_600_000);
  const writer = await pool.connect();
  try {
    await writer.query('begin');
    await writer.query(
      `insert into es.events (stream, revision, id, type, data, metadata)
       values ('account-1', 0, gen_random_uuid(), 'AccountOpened', '{}', '{}')`,
    );

    await store.removeExpired();

    expect(await store.find(claim)).toBeUndefined();
  } finally {
    await writer.query('rollback');
    writer.release();
  }
});

test('rows that are older than the count of stored bytes are counted and removed like later rows', async () => {
  const older = await createTestDatabase();
  const before = contentMigrations.slice(
    0,
    contentMigrations.findIndex(({ id }) => id === 'stored-bytes-1'),
  );
  await migrate(older.url, before);
  const books = new pg.Pool({ connectionString: older.url });
  const payer = randomUUID();
  await books.query(
    `insert into app.responses (id, account_id, expires_at, sealed_by, box) values ('resp_1', $1, now() - interval '1 s', 'k', 'box')`,
    [payer],
  );
  const insertRow = (key: string) =>
    books.query(
      `insert into gateway.answers (payer_id, key, request, request_id, revision, owner, leased_until, expires_at, answer)
       values ($1, $2, 'r', $1, 1, $1, now(), now() + interval '1 h', 'answer')`,
      [payer, key],
    );
  await insertRow('before');
  await migrate(older.url, contentMigrations);
  const stored = new PostgresResponseStore(books);
  expect(await stored.getStoredBytes(payer)).toBe(9);
  await stored.removeExpired(new Date().toISOString());
  expect(await stored.getStoredBytes(payer)).toBe(6);
  await insertRow('restored');
  expect(await stored.getStoredBytes(payer)).toBe(12);
  await books.end();
  await older.drop();
});

test('a saved response is opened only with the same master key', async () => {
  const claim = await claimKey();
  await store.end(claim, RESPONSE);
  const sealedResponse = (await store.find(claim))?.sealedResponse as Buffer;
  expect(await store.open(sealedResponse)).toEqual(RESPONSE);
  await expect(createStore(WITHOUT_FILES).open(sealedResponse)).rejects.toThrow();
});
