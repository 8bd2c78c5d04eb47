import type pg from 'pg';
import { BlockedByEventError, type EventReader, type EventSink, LeaseLostError } from '#kernel';
import { openPool } from '#postgres';
import { createProjectionSink, type Projection, READ_MODEL_CONNECTION_OPTIONS } from './projection.ts';
import { ATTACH_QUERY_COUNTS_SQL, createQueryCountMigration } from './query-counts.ts';
import { canReadSkippedEvents, recordBlocked, recordRepaired } from './skipped-events.ts';

/** Name of the lease under which read models are written. */
export const PROJECTOR_LEASE = 'projector';

/**
 * Creates the function that replaces a read model with the table of its rebuild.
 * @param prepare statements of the function that run before the old table is dropped
 */
function toFinishRebuildSql(prepare = ''): string {
  return `create or replace function books.finish_rebuild(p_name text) returns void language plpgsql
        security definer set search_path = pg_catalog, pg_temp
      as $$
      -- Replaces the read model with the table of its rebuild. Those who may use the read model may use the new one.
      declare
        draft text := 'books_rebuild_' || p_name;
        allowed record;
      begin
        if p_name = 'checkpoints' or to_regclass(format('%I.%I', draft, p_name)) is null then
          raise exception 'no rebuild of % was started', p_name;
        end if;
        if session_user <> current_user then
          execute format('revoke all on all tables in schema %I from %I', draft, session_user);
        end if;
        for allowed in
          select privilege_type as privilege,
                 case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as grantee
            from pg_class, aclexplode(relacl)
           where oid = to_regclass(format('books.%I', p_name)) and grantee <> relowner
        loop
          execute format('grant %s on %I.%I to %s', allowed.privilege, draft, p_name, allowed.grantee);
        end loop;
        ${prepare}
        execute format('drop table books.%I', p_name);
        execute format('alter table %I.%I set schema books', draft, p_name);
        execute format('drop schema %I cascade', draft);
      end $$;`;
}

/**
 * The functions run with the rights of their owner, who owns the read models. So a service can rebuild a read model
 * without a right to create or change tables, and cannot attach code to a table that its owner would execute.
 */
export const rebuildMigrations = [
  {
    id: 'rebuild-1',
    minContract: 0,
    changes: 'creates two functions with which other users than the owner rebuild read models',
    sql: `
      create function books.start_rebuild(p_name text) returns void language plpgsql
        security definer set search_path = pg_catalog, pg_temp
      as $$
      -- Creates an empty table like the read model, and one for its checkpoint, which the caller may fill.
      declare
        draft text := 'books_rebuild_' || p_name;
      begin
        if p_name = 'checkpoints' or to_regclass(format('books.%I', p_name)) is null then
          raise exception 'there is no read model %', p_name;
        end if;
        execute format('drop schema if exists %I cascade', draft);
        execute format('create schema %I', draft);
        execute format('create table %I.%I (like books.%I including all)', draft, p_name, p_name);
        execute format('create table %I.checkpoints (like books.checkpoints including all)', draft);
        if session_user <> current_user then
          execute format('grant usage on schema %I to %I', draft, session_user);
          execute format('grant select, insert, update, delete on all tables in schema %I to %I', draft, session_user);
        end if;
      end $$;

      ${toFinishRebuildSql()}

      revoke execute on function books.start_rebuild(text), books.finish_rebuild(text) from public;
    `,
  },
  createQueryCountMigration(toFinishRebuildSql(ATTACH_QUERY_COUNTS_SQL)),
] as const;

export interface RebuildOptions {
  readonly store: Pick<EventReader, 'readAll'>;
  readonly databaseUrl: string;
  /**
   * Returns a fencing token that is at least as high as that of any other writer. A rebuild uses a first token for the
   * new table, and a second one when it switches the tables. Writers with a lower token then lose their lease.
   */
  readonly issueFencingToken: () => Promise<number>;
  readonly signal?: AbortSignal;
}

/**
 * Rebuilds a read model if its rows have another version than `projection`, or if this build can read events that were
 * skipped as unknown.
 */
export async function rebuildIfOutdated(projection: Projection, pool: pg.Pool, options: RebuildOptions): Promise<void> {
  const text = 'select version from books.checkpoints where projection = $1';
  const { rows } = await pool.query<{ version: number }>(text, [projection.name]);
  const isOutdated = rows[0] !== undefined && rows[0].version !== projection.version;
  if (isOutdated || (await canReadSkippedEvents(pool, projection.name))) await rebuild(projection, options);
}

/**
 * Rebuilds a read model from all events while the service runs. Readers see the old table until one transaction
 * replaces it with the new one. Any other writer then loses its lease, and continues on the new table under a new one.
 * Events that were skipped before are applied if possible.
 * @returns the number of replayed events
 * @throws LeaseLostError if a writer with a higher token has the table; BlockedByEventError if an event cannot be
 *   applied; the reason of `signal` once it has aborted
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
    await admin.query('select books.start_rebuild($1)', [name]);
    const sink = createProjectionSink(projection, pool, await issueFencingToken());
    let replayed = await replay(sink, options, (position) => recordProgress(admin, name, position));
    const client = await admin.connect();
    try {
      await client.query('begin');
      // Projectors wait from here on, so that the new table can reach the end of the events.
      await client.query('lock table books.checkpoints in share row exclusive mode');
      replayed += await replay(sink, options);
      // This token is issued under the lock, so it is not lower than that of any projector that has written so far.
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
      await client.query('select books.finish_rebuild($1)', [name]);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => {}); // a lost connection has also ended the transaction
      throw error;
    } finally {
      client.release();
    }
    return replayed;
  } catch (error) {
    await recordProgress(admin, name, null).catch(() => {}); // the original error matters more
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

/** Stores the progress of a rebuild, because the checkpoint of the old table does not show it. */
function recordProgress(admin: pg.Pool, name: string, position: bigint | null): Promise<unknown> {
  return admin.query('update books.checkpoints set rebuilt_to = $2 where projection = $1', [name, position]);
}
