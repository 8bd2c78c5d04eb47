/**
 * Writes the fixture of stored data. Runs all roles with their own database, sends requests of many kinds, and
 * saves the tables, the files, a backup and the data of clients. apps/gateway/src/stored-data.int.spec.ts describes how to
 * call it.
 */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { Secrets } from '#application';
import { type AccountEvent, accountCodec, accountDecider, EVENT_SCHEMA } from '#domain';
import { PostgresEventStore, PostgresSnapshots } from '#eventstore';
import { fold, NO_STREAM, type StoredEvent, withUpcasting } from '#kernel';
import { nodeRandomness } from '#runtime';
import { createTestDatabase } from '../world/test-database.ts';
import { Wiretap } from '../world/wiretap.ts';
import { TestWorld } from '../world/world.ts';
import { STORED_DATA_DIR } from './fixture.ts';
import { FixtureWriter, MASTER_KEY } from './fixture-writer.ts';
import * as requests from './requests.ts';
import { loadTables, writeTable } from './tables.ts';

/** Links and challenges contain this port. The gateway listens there only while the fixture is written. */
const PORT = 18_091;

export async function writeStoredData(): Promise<void> {
  for (const folder of ['tables', 'files', 'backup'])
    await rm(path.join(STORED_DATA_DIR, folder), { recursive: true, force: true });
  await mkdir(STORED_DATA_DIR, { recursive: true });
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-stored-data-'));
  const [database, tap] = await Promise.all([createTestDatabase(), Wiretap.open()]);
  const publicBaseUrl = `http://127.0.0.1:${PORT}`;
  const environment = {
    DATABASE_URL: database.url,
    DATA_DIR: directory,
    MASTER_KEY,
    PORT: String(PORT),
    PUBLIC_BASE_URL: publicBaseUrl,
    UNCLAIMED_AFTER_DAYS: '30',
    ...tap.settings,
  };
  const world = await TestWorld.openWithSagas(environment, [requests.VIDEO_MODEL]);
  tap.target = world.sandbox;
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  try {
    await new FixtureWriter(world, pool, tap, directory).write(publicBaseUrl);
  } finally {
    await pool.end();
    await world.close();
    await Promise.all([tap.close(), database.drop(), rm(directory, { recursive: true })]);
  }
}

/**
 * Replaces the snapshot of the fixture by one of the current codec: all its events up to the same revision. The codec
 * changes with every new version of an event, and snapshots of earlier codecs are ignored.
 */
export async function writeSnapshot(): Promise<void> {
  const database = await createTestDatabase();
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  const store = new PostgresEventStore({ connectionString: database.url });
  try {
    await loadTables(database);
    const { rows } = await pool.query('select stream, revision::int, position, last from es.snapshots');
    const keys = new Secrets(nodeRandomness, Buffer.from(MASTER_KEY, 'hex')).derivePurposeKeys(
      'countinghouse snapshots',
    );
    for (const { stream, revision, position, last } of rows) {
      let account = accountDecider.getInitialState();
      for await (const events of withUpcasting(store, EVENT_SCHEMA).read(stream, NO_STREAM)) {
        const before = events.filter((event) => event.revision <= revision) as readonly StoredEvent<AccountEvent>[];
        account = fold(accountDecider, account, before);
      }
      const state = accountCodec.encode(account);
      const snapshot = { revision, position: BigInt(position), lastEventId: last, state };
      await new PostgresSnapshots(pool, keys).save(stream, accountCodec.version, snapshot);
    }
    await writeTable(database.url, 'es.snapshots');
  } finally {
    await Promise.all([pool.end(), store.close()]);
    await database.drop();
  }
}
