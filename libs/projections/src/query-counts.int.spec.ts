import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import { eventStoreMigrations, MemoryEventStore } from '#eventstore';
import { migrate } from '#foundation';
import type { EventBatch, EventSink } from '#kernel';
import {
  countQueries,
  createProjectionSink,
  findIncorrectQueryCounts,
  type Projection,
  projectionMigrations,
  projections,
  QueryHistory,
  READ_MODEL_CONNECTION_OPTIONS,
  rebuild,
} from '#projections';
import { createHistoryArbitrary, createSampleHistory, toNewEvent } from '../../testing/src/scenarios/histories.ts';
import type { HistoryEvent } from '../../testing/src/scenarios/history-builder.ts';
import { ReadModelTables, splitIntoBatches } from '../../testing/src/world/read-model-tables.ts';
import { createTestDatabase } from '../../testing/src/world/test-database.ts';

const MIGRATION = 'query-counts-1';
const ACCOUNT = '30000000-0000-4000-8000-000000000000';
const queries = projections.find(({ name }) => name === 'queries') as Projection;
const { events } = createSampleHistory();
const [first, second, third] = splitIntoBatches(events, [60, 140]) as [EventBatch, EventBatch, EventBatch];

let books: ReadModelTables;
let token = 0;
beforeAll(async () => {
  books = await ReadModelTables.open();
});
beforeEach(() => books.clear());
afterAll(() => books.close());

async function openWriter(): Promise<EventSink> {
  const sink = createProjectionSink(queries, books.pool, ++token);
  await sink.loadCheckpoint();
  return sink;
}

/** Inserts records from `start` to `end` at intervals of an hour. Two in three have a key. */
async function insertRecords(pool: pg.Pool, start: number, end: number, table = 'books.queries'): Promise<void> {
  await pool.query(
    `insert into ${table}
     select n, timestamptz '2026-01-01T00:00Z' + n * interval '1 h', $1, case when n % 3 > 0 then 'key ' || n % 3 end,
            'm', 1, 1, n, 'chat_completion', 'api', false, false, false, null, n from generate_series($2::int, $3::int) as n`,
    [ACCOUNT, start, end],
  );
}

const countAll = (pool: pg.Pool) => countQueries(pool, { accountId: ACCOUNT });

/** Checks that every count is right, and that there are counts exactly if there are records. */
async function expectRightCounts(pool = books.pool): Promise<void> {
  const { incorrect, comparedCount } = await findIncorrectQueryCounts(pool);
  const { rows } = await pool.query('select exists (select from books.queries) as has_records');
  expect([incorrect, comparedCount > 0]).toEqual([[], rows[0].has_records]);
}

const rebuildFrom = async (history: readonly HistoryEvent[]) => {
  const store = new MemoryEventStore();
  for (const event of history) await store.append(event.stream, event.revision - 1, [toNewEvent(event)]);
  await rebuild(queries, { store, databaseUrl: books.url, issueFencingToken: async () => ++token });
};

describe('the counts of the query history', () => {
  test('are the numbers of records of every account and key, for random histories and batches', async () => {
    const check = async (history: readonly HistoryEvent[], cuts: readonly number[]) => {
      await books.clear();
      const writer = await openWriter();
      for (const batch of splitIntoBatches(history, cuts)) await writer.apply(batch);
      await expectRightCounts();
      const { rows } = await books.pool.query('select account_id, key_id, count(*)::int from queries group by 1, 2');
      for (const [accountId, own] of Map.groupBy(rows, (row) => row.account_id)) {
        const total = own.reduce((sum, { count }) => sum + count, 0);
        expect(await countQueries(books.pool, { accountId })).toBe(total);
        for (const { key_id: keyId, count } of own.filter(({ key_id }) => key_id !== null))
          expect(await countQueries(books.pool, { accountId, keyId })).toBe(count);
      }
    };
    let last = Promise.resolve();
    const property = fc.asyncProperty(
      createHistoryArbitrary(100),
      fc.array(fc.nat(), { maxLength: 8 }),
      ({ events: history }, cuts) => {
        last = check(history, cuts);
        return last;
      },
    );
    await fc.assert(property, { numRuns: 5, interruptAfterTimeLimit: 3_000 });
    await last; // an interrupted run would otherwise continue during the next test
  });

  test('include a repeated batch once, also if two projectors write it', async () => {
    const [old, next] = [await openWriter(), await openWriter()];
    for (const batch of [first, first, second, first, second]) {
      const results = await Promise.allSettled([old.apply(batch), next.apply(batch)]);
      expect(results[1]?.status).toBe('fulfilled');
    }
    await next.apply(third);
    await expectRightCounts();
    await expect(old.apply(third)).rejects.toMatchObject({ name: 'LeaseLostError' });
    await expectRightCounts();
  });

  test('do not change if the batch is rolled back', async () => {
    const writer = await openWriter();
    await writer.apply(first);
    await books.pool.query(`
      create function books.fail() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$;
      create trigger fails after insert on books.queries execute function books.fail()`);
    await expect(writer.apply(second)).rejects.toThrow('disk full');
    await books.pool.query('drop function books.fail() cascade');
    await expectRightCounts();
    await writer.apply(second);
    await expectRightCounts();
  });

  test('follow records that are deleted, changed or truncated', async () => {
    await insertRecords(books.pool, 1, 100);
    expect(await countAll(books.pool)).toBe(100);
    await books.pool.query(`delete from queries where at < '2026-01-03T00:00Z'`);
    await expectRightCounts();
    expect((await new QueryHistory(books.pool).read({ accountId: ACCOUNT }, 1, 10)).total).toBe(53);
    await books.pool.query(`update queries set key_id = 'another', at = at + interval '1 day' where key_id = 'key 1'`);
    await expectRightCounts();
    expect(await countQueries(books.pool, { accountId: ACCOUNT, keyId: 'key 1' })).toBe(0);
    await books.pool.query('truncate queries');
    await expectRightCounts();
    expect(await countAll(books.pool)).toBe(0);
  });

  test('are right if old records are deleted while a projector adds records of the same days', async () => {
    await insertRecords(books.pool, 1, 200);
    const work = Array.from({ length: 10 }, async (_, i) => {
      if (i % 2 === 0) await insertRecords(books.pool, 1_000 * (i + 1), 1_000 * (i + 1) + 20);
      else await books.pool.query('delete from queries where position between $1 and $2', [i * 20, i * 20 + 19]);
    });
    await Promise.all(work);
    await expectRightCounts();
    expect(await countAll(books.pool)).toBe(200 + 5 * 21 - 5 * 20);
  });

  test('are counted again by a rebuild, and updated by changes of the table that it creates', async () => {
    const writer = await openWriter();
    await writer.apply(first);
    for (const damage of ['update query_counts set records = records + 1', 'delete from query_counts']) {
      await books.pool.query(damage);
      expect((await findIncorrectQueryCounts(books.pool)).incorrect).not.toEqual([]);
      await rebuildFrom(events);
      await expectRightCounts();
    }
    await insertRecords(books.pool, 1_000_001, 1_000_100);
    await expectRightCounts();
    expect(await countAll(books.pool)).toBe(100);
    const { rows } = await books.pool.query(`select tgname from pg_trigger where tgrelid = 'books.queries'::regclass`);
    expect(rows).toHaveLength(5);
  });
});

describe('the upgrade from the release before', () => {
  const all = [...eventStoreMigrations, ...projectionMigrations];
  const before = all.filter(({ id }) => id !== MIGRATION);

  async function withDatabase(work: (pool: pg.Pool, upgrade: () => Promise<void>) => Promise<void>): Promise<void> {
    const { url, drop } = await createTestDatabase();
    await migrate(url, before);
    const pool = new pg.Pool({ connectionString: url, options: READ_MODEL_CONNECTION_OPTIONS, max: 3 });
    await work(pool, () => migrate(url, all)).finally(() => pool.end());
    await drop();
  }

  test('counts existing records, and those that a projector of that release adds afterwards', async () => {
    await withDatabase(async (pool, upgrade) => {
      await insertRecords(pool, 1, 100);
      await upgrade();
      await expectRightCounts(pool);
      await insertRecords(pool, 101, 150);
      await expectRightCounts(pool);
      expect(await countAll(pool)).toBe(150);
    });
  });

  test('waits for a transaction that adds records, and counts these', async () => {
    await withDatabase(async (pool, upgrade) => {
      const writer = await pool.connect();
      await writer.query('begin');
      await insertRecords(writer as unknown as pg.Pool, 1, 50);
      const upgraded = upgrade();
      await insertRecords(writer as unknown as pg.Pool, 51, 60);
      await writer.query('commit');
      writer.release();
      await upgraded;
      await expectRightCounts(pool);
      expect(await countAll(pool)).toBe(60);
    });
  });

  test('counts the records of a rebuild that was started before and ends afterwards', async () => {
    await withDatabase(async (pool, upgrade) => {
      await insertRecords(pool, 1, 100);
      await pool.query(`select books.start_rebuild('queries')`);
      await insertRecords(pool, 1, 30, 'books_rebuild_queries.queries');
      await upgrade();
      await insertRecords(pool, 31, 40, 'books_rebuild_queries.queries');
      await pool.query(`select books.finish_rebuild('queries')`);
      await expectRightCounts(pool);
      expect(await countAll(pool)).toBe(40);
      await insertRecords(pool, 41, 45);
      expect(await countAll(pool)).toBe(45);
    });
  });
});
