import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type FileName, type IdempotencyClaim, Secrets } from '#application';
import { eventStoreMigrations } from '#eventstore';
import { migrate } from '#foundation';
import {
  createMigratedDatabase,
  createTestDatabase,
  createTestRuntime,
  idempotencyStoreContract,
  type TestDatabase,
} from '#testing';
import { contentMigrations } from './content-migrations.ts';
import { PostgresIdempotencyStore } from './idempotency-store.ts';
import { PostgresResponseStore } from './stored-responses.ts';

const ANSWER = { status: 200, headers: { 'content-type': 'audio/mpeg' }, body: Buffer.from([0, 10, 255, 10]) };

/** The files of `a`: the bytes of each are its number. */
const files = {
  find: async ({ id, n }: FileName) =>
    id === 'a'
      ? {
          mediaType: 'image/png',
          size: 1,
          read: async function* () {
            yield Buffer.from([n]);
          },
        }
      : undefined,
};

let database: TestDatabase;
let pool: pg.Pool;
let kept: PostgresIdempotencyStore;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is closed
  kept = new PostgresIdempotencyStore(pool, new Secrets(createTestRuntime(), randomBytes(32)), files, 60_000);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const idOf = (payer: string) => payer.slice('account-'.length);

const claimOf = (more: Partial<IdempotencyClaim> = {}): IdempotencyClaim => {
  const [payer, requestId] = [`account-${randomUUID()}`, randomUUID()];
  return { payer, key: 'k', request: 'r', requestId, revision: 7, owner: requestId, ...more };
};

async function claimed(): Promise<IdempotencyClaim> {
  const claim = claimOf();
  await kept.claim(claim);
  return claim;
}

const leaseOf = async ({ payer }: IdempotencyClaim): Promise<number> => {
  const sql = 'select extract(epoch from leased_until - now())::float as left from gateway.answers where payer_id = $1';
  return (await pool.query(sql, [idOf(payer)])).rows[0].left;
};

const expire = ({ payer }: IdempotencyClaim) =>
  pool.query('update gateway.answers set expires_at = now() where payer_id = $1', [idOf(payer)]);

idempotencyStoreContract('the PostgreSQL store', async () => ({
  store: kept,
  getLeaseSeconds: leaseOf,
  expire,
  close: async () => {},
}));

describe('an idempotency key', () => {
  test('is removed only when it has expired', async () => {
    const [old, young] = [await claimed(), await claimed()];
    await expire(old);
    await kept.removeExpired();
    expect(await kept.find(old)).toBeUndefined();
    expect(await kept.find(young)).toBeDefined();
  });

  test('is removed after its expiry while another transaction appends events', async () => {
    await migrate(database.url, eventStoreMigrations);
    const claim = await claimed();
    await expire(claim);
    const writer = await pool.connect();
    try {
      await writer.query('begin');
      await writer.query(
        `insert into es.events (stream, revision, id, type, data, metadata)
         values ('account-1', 0, gen_random_uuid(), 'AccountOpened', '{}', '{}')`,
      );

      await kept.removeExpired();

      expect(await kept.find(claim)).toBeUndefined();
    } finally {
      await writer.query('rollback');
      writer.release();
    }
  });
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
  const keep = (key: string) =>
    books.query(
      `insert into gateway.answers (payer_id, key, request, request_id, revision, owner, leased_until, expires_at, answer)
       values ($1, $2, 'r', $1, 1, $1, now(), now() + interval '1 h', 'answer')`,
      [payer, key],
    );
  await keep('before');
  await migrate(older.url, contentMigrations);
  const stored = new PostgresResponseStore(books);
  expect(await stored.getStoredBytes(payer)).toBe(9);
  await stored.removeExpired(new Date().toISOString());
  expect(await stored.getStoredBytes(payer)).toBe(6);
  await keep('restored');
  expect(await stored.getStoredBytes(payer)).toBe(12);
  await books.end();
  await older.drop();
});

describe('a saved response', () => {
  test('counts towards the stored bytes of its payer until it is replaced or removed', async () => {
    const [first, second] = [await claimed(), await claimed()];
    for (const claim of [first, second]) await kept.end(claim, ANSWER);
    const answer = (await kept.find(first))?.sealedResponse;
    const another = { ...claimOf({ payer: first.payer }), key: 'another' };
    expect(await kept.claim(another)).toBe(answer?.length);
    await expire(first);
    await kept.claim(claimOf({ payer: first.payer }));
    await expire(second);
    await kept.removeExpired();
    for (const { payer } of [first, second]) expect(await kept.claim({ ...claimOf({ payer }), key: 'third' })).toBe(0);
  });

  test('is saved only within the limit of its payer, also with concurrent requests; otherwise it is lost', async () => {
    const { payer } = claimOf();
    const running = Array.from({ length: 8 }, (_, i) => ({ ...claimOf({ payer }), key: `k${i}` }));
    for (const each of running) await kept.claim(each);
    const body = randomBytes(300);
    const ended = await Promise.all(running.map((each) => kept.end(each, { ...ANSWER, body }, 1_500)));
    expect(ended.filter((isKept) => isKept)).toHaveLength(3);
    const found = await Promise.all(running.map((each) => kept.find(each)));
    expect(found.map((each) => each?.isLost)).toEqual(ended.map((isKept) => !isKept));
    expect(await kept.claim({ ...claimOf({ payer }), key: 'next' })).toBeLessThanOrEqual(1_500);
  });

  test('is returned byte for byte, and only with the same master key', async () => {
    const claim = await claimed();
    await kept.end(claim, ANSWER);
    const { sealedResponse: answer } = (await kept.find(claim)) ?? {};
    if (!answer) throw new Error('the response was not saved');
    expect(await kept.open(answer)).toEqual(ANSWER);
    const stranger = new PostgresIdempotencyStore(
      pool,
      new Secrets(createTestRuntime(), randomBytes(32)),
      files,
      60_000,
    );
    await expect(stranger.open(answer)).rejects.toThrow();
  });

  test('that was saved without its images has them again while their files exist', async () => {
    const body = Buffer.from('{"b64_json":"","prompt":"\\"b64_json\\":\\"\\""},{"b64_json":""}');
    const save = async (id: string) => {
      const claim = await claimed();
      await kept.end(claim, { ...ANSWER, body, images: [1, 2].map((n) => ({ id, n })) });
      const { sealedResponse } = (await kept.find(claim)) ?? {};
      return kept.open(sealedResponse ?? Buffer.alloc(0));
    };
    const restored = await save('a');
    expect(restored?.body.toString()).toBe('{"b64_json":"AQ==","prompt":"\\"b64_json\\":\\"\\""},{"b64_json":"Ag=="}');
    expect(Object.keys(restored ?? {})).not.toContain('images');
    expect(await save('b')).toBeUndefined();
  });
});
