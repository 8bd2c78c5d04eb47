import type pg from 'pg';
import { BlockedByEventError, type EventReader, type EventSink, LeaseLostError } from '#kernel';
import { createClient, openPool } from '#postgres';
import { createProjectionSink, type Projection, READ_MODEL_CONNECTION_OPTIONS } from './projection.ts';
import { canReadSkippedEvents, recordBlocked, recordRepaired } from './skipped-events.ts';

export interface RebuildOptions {
  readonly store: Pick<EventReader, 'readAll'>;
  readonly databaseUrl: string;
  /** Draws a token that no other writer has that is ahead of this one. */
  readonly issueFencingToken: () => Promise<number>;
  readonly signal?: AbortSignal;
}

/** Rebuilds a read model whose rows were written by a program that folds otherwise, or did not know all facts. */
export async function rebuildIfOutdated(projection: Projection, options: RebuildOptions): Promise<void> {
  const client = createClient({ connectionString: options.databaseUrl, name: 'rebuild' });
  await client.connect();
  const text = 'select version from books.checkpoints where projection = $1';
  const isOutdated = async () => {
    const { rows } = await client.query<{ version: number }>(text, [projection.name]);
    if (rows[0] && rows[0].version !== projection.version) return true;
    return canReadSkippedEvents(client, projection.name);
  };
  if (await isOutdated().finally(() => client.end())) await rebuild(projection, options);
}

/**
 * Drops a read model and replays it, while the service runs. The new table is filled beside the old one, which readers
 * see until both change places in one transaction. Another projector finds that it has lost its turn, and goes on from
 * there with a new one. Facts that were skipped before are tried again.
 * @returns how many facts were replayed
 * @throws LeaseLostError when a writer with a higher token has the table
 */
export async function rebuild(projection: Projection, options: RebuildOptions): Promise<number> {
  const { databaseUrl: connectionString, issueFencingToken } = options;
  const { name } = projection;
  const draft = `books_rebuild_${name}`;
  const admin = openPool({ connectionString, name: 'rebuild', max: 1, queryTimeoutMs: null });
  const pool = openPool({
    connectionString,
    name: 'rebuild',
    max: 2,
    queryTimeoutMs: null,
    options: READ_MODEL_CONNECTION_OPTIONS.replace('search_path=books', `search_path=${draft}`),
  });
  try {
    await admin.query(`drop schema if exists ${draft} cascade; create schema ${draft};
      create table ${draft}.${name} (like books.${name} including all);
      create table ${draft}.checkpoints (like books.checkpoints including all)`);
    const sink = createProjectionSink(projection, pool, await issueFencingToken());
    let replayed = await replay(sink, options, (position) => recordProgress(admin, name, position));
    const client = await admin.connect();
    try {
      await client.query('begin');
      // The projectors wait.
      await client.query('lock table books.checkpoints in share row exclusive mode');
      replayed += await replay(sink, options);
      await client.query(`drop table books.${name}; alter table ${draft}.${name} set schema books`);
      // Drawn here, where no other process can take the table: an earlier projector has lost its turn.
      const { rowCount } = await client.query(
        `insert into books.checkpoints as c (projection, position, writer, version)
         select projection, position, $1, version from ${draft}.checkpoints
         on conflict (projection) do update
            set position = excluded.position, writer = excluded.writer, version = excluded.version,
                rebuilt_to = null
          where c.writer <= excluded.writer`,
        [await issueFencingToken()],
      );
      if (rowCount !== 1) throw new LeaseLostError(`${name} is written by another process, which has a higher token`);
      await recordRepaired(client, name, sink.skippedPositions);
      await client.query(`drop schema ${draft} cascade`);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => {}); // where the connection is lost, so is the transaction
      throw error;
    } finally {
      client.release();
    }
    return replayed;
  } catch (error) {
    await recordProgress(admin, name, null).catch(() => {}); // it has failed all the same
    if (error instanceof BlockedByEventError) await recordBlocked(admin, name, error);
    throw error;
  } finally {
    await pool.end();
    await admin.end();
  }
}

async function replay(
  sink: EventSink,
  { store, signal }: RebuildOptions,
  onProgress: (position: bigint) => Promise<unknown> = async () => {},
): Promise<number> {
  let replayed = 0;
  for await (const batch of store.readAll(await sink.loadCheckpoint())) {
    signal?.throwIfAborted();
    await sink.apply(batch);
    await onProgress(batch.position);
    replayed += batch.events.length;
  }
  return replayed;
}

/** The old table's checkpoint stands still meanwhile: without this its projector would seem to stand still too. */
function recordProgress(admin: pg.Pool, name: string, position: bigint | null): Promise<unknown> {
  return admin.query('update books.checkpoints set rebuilt_to = $2 where projection = $1', [name, position]);
}
