import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { PostgresCheckpoints, PostgresSnapshots } from '#eventstore';
import { createMigratedDatabase, type TestDatabase } from '#testing';
import { checkpointStoreContract } from '../../../testing/src/contracts/checkpoint-store.ts';
import { snapshotStoreContract } from '../../../testing/src/contracts/snapshot-store.ts';

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
const at = (revision: number) => ({
  revision,
  position: BigInt(revision) * 10n,
  lastEventId: LAST,
  state: revision,
});

snapshotStoreContract('in PostgreSQL', async () => new PostgresSnapshots(pool, [KEY]));
checkpointStoreContract('in PostgreSQL', async () => new PostgresCheckpoints(pool));

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

test('a checkpoint is shared by all processes, and never moves back whichever of them saves it', async () => {
  const [one, other] = [new PostgresCheckpoints(pool), new PostgresCheckpoints(pool)];
  await Promise.all([one.save('reader', 30n), other.save('reader', 10n), one.save('reader', 20n)]);
  expect(await other.load('reader')).toBe(30n);
});
