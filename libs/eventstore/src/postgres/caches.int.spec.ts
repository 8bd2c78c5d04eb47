import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { PostgresCheckpoints, PostgresSnapshots } from '#eventstore';
import { START_POSITION } from '#kernel';
import { createMigratedDatabase, type TestDatabase } from '#testing';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
});
beforeEach(() => pool.query('truncate es.snapshots, es.checkpoints'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const KEY = Buffer.alloc(32, 1);
const LAST = randomUUID();
const at = (revision: number, state: unknown = revision) => ({
  revision,
  position: BigInt(revision) * 10n,
  lastEventId: LAST,
  state,
});

describe('a snapshot', () => {
  test('preserves text, nested structure, and a position above the safe integers of JavaScript', async () => {
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    const snapshot = {
      revision: 7,
      position: 2n ** 62n,
      lastEventId: LAST,
      state: { text: 'ä"\\☕', list: [[1, null], { a: '1' }] },
    };
    await snapshots.save('account-a', '1', snapshot);
    expect(await snapshots.load('account-a', '1')).toEqual(snapshot);
  });

  test('is found only by its stream and version', async () => {
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    await snapshots.save('account-a', '1', at(7));
    expect(await snapshots.load('account-b', '1')).toBeUndefined();
    expect(await snapshots.load('account-a', '2')).toBeUndefined();
  });

  test('is replaced by one of its version only if that is later, regardless of the order of saves', async () => {
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    await Promise.all([3, 9, 5, 1, 9, 7].map((revision) => snapshots.save('account-a', '1', at(revision))));
    expect(await snapshots.load('account-a', '1')).toEqual(at(9));
  });

  test('is replaced by one of another version, even if that is earlier', async () => {
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    await snapshots.save('account-a', '1', at(9));
    await snapshots.save('account-a', '2', at(5));
    expect(await snapshots.load('account-a', '2')).toEqual(at(5));
    expect(await snapshots.load('account-a', '1')).toBeUndefined();
  });
});

describe('a snapshot of uncertain origin', () => {
  const others = Buffer.alloc(32, 2);

  test.each([
    ['was changed', `update es.snapshots set state = '9'`],
    ['has another revision', 'update es.snapshots set revision = 8'],
    ['has another position', 'update es.snapshots set position = 8'],
    ['has another last event', 'update es.snapshots set last = gen_random_uuid()'],
    ['belongs to another stream', `update es.snapshots set stream = 'account-a' where stream = 'account-b'`],
    ['has no MAC', 'update es.snapshots set mac = null'],
    ['has a MAC that is too short', `update es.snapshots set mac = substring(mac for 16)`],
  ])('is rejected and removed if it %s', async (_, change) => {
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    await snapshots.save(change.includes('account-b') ? 'account-b' : 'account-a', '1', at(7));
    expect((await pool.query(change)).rowCount).toBe(1);
    await expect(snapshots.load('account-a', '1')).rejects.toThrow('was not written by this installation');
    expect(await snapshots.load('account-a', '1')).toBeUndefined();
  });

  test('is used only if its MAC was made with a key of the key ring', async () => {
    await new PostgresSnapshots(pool, [others]).save('account-a', '1', at(7));
    expect(await new PostgresSnapshots(pool, [KEY, others]).load('account-a', '1')).toEqual(at(7));
    await expect(new PostgresSnapshots(pool, [KEY]).load('account-a', '1')).rejects.toThrow('was not written by');
  });

  test('is ignored if it was stored before MACs existed', async () => {
    await pool.query(
      `insert into es.snapshots (stream, version, revision, position, state) values ('account-a', '1', 7, 70, '7')`,
    );
    const snapshots = new PostgresSnapshots(pool, [KEY]);
    expect(await snapshots.load('account-a', '1')).toBeUndefined();
    await snapshots.save('account-a', '1', at(5));
    expect(await snapshots.load('account-a', '1')).toEqual(at(5));
  });
});

describe('a checkpoint', () => {
  test('is at the start until it is saved', async () => {
    expect(await new PostgresCheckpoints(pool).load('reader')).toBe(START_POSITION);
  });

  test('belongs to its reader and is loaded by another instance', async () => {
    await new PostgresCheckpoints(pool).save('reader', 2n ** 62n);
    expect(await new PostgresCheckpoints(pool).load('reader')).toBe(2n ** 62n);
    expect(await new PostgresCheckpoints(pool).load('another')).toBe(START_POSITION);
  });

  test('never moves back, even if an older one is saved later', async () => {
    const [one, other] = [new PostgresCheckpoints(pool), new PostgresCheckpoints(pool)];
    await Promise.all([one.save('reader', 30n), other.save('reader', 10n), one.save('reader', 20n)]);
    expect(await other.load('reader')).toBe(30n);
  });
});
