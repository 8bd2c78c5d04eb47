import pg from 'pg';
import type { EventStore } from '#kernel';
import { BOOKS_OPTIONS, type Projection, sinkOf } from './projection.ts';

/**
 * Drops a read model and replays it, while the service runs. The new table is filled beside the old one, which readers
 * see until both change places in one transaction. The projector finds that it has lost its turn, and goes on from there
 * with a new one.
 * @param drawToken draws a token that is higher than that of the projector now
 * @returns how many facts were replayed
 */
export async function rebuild(
  projection: Projection,
  store: EventStore,
  connectionString: string,
  drawToken: () => Promise<number>,
): Promise<number> {
  const { name } = projection;
  const draft = `books_rebuild_${name}`;
  const admin = new pg.Pool({ connectionString, max: 1 });
  const pool = new pg.Pool({
    connectionString,
    max: 2,
    options: BOOKS_OPTIONS.replace('search_path=books', `search_path=${draft}`),
  });
  try {
    await admin.query(`drop schema if exists ${draft} cascade; create schema ${draft};
      create table ${draft}.${name} (like books.${name} including all);
      create table ${draft}.checkpoints (like books.checkpoints including all)`);
    const sink = sinkOf(projection, pool, await drawToken());
    let replayed = await replay(store, sink);
    const client = await admin.connect();
    try {
      await client.query('begin');
      // The projectors wait. This lock takes no transaction id, which the readers of the log would wait for.
      await client.query('lock table books.checkpoints in share row exclusive mode');
      replayed += await replay(store, sink);
      await client.query(`drop table books.${name}; alter table ${draft}.${name} set schema books`);
      // Drawn here, where no other process can take the table: an earlier projector has lost its turn.
      await client.query(
        `insert into books.checkpoints select projection, position, $1 from ${draft}.checkpoints
         on conflict (projection) do update set position = excluded.position, writer = excluded.writer`,
        [await drawToken()],
      );
      await client.query(`drop schema ${draft} cascade`);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
    return replayed;
  } finally {
    await pool.end();
    await admin.end();
  }
}

async function replay(store: EventStore, sink: ReturnType<typeof sinkOf>): Promise<number> {
  let replayed = 0;
  for await (const batch of store.history(await sink.checkpoint())) {
    await sink.apply(batch);
    replayed += batch.events.length;
  }
  return replayed;
}
