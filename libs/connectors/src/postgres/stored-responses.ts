import pg from 'pg';
import {
  PreviousResponseRemovedError,
  ResponseStore,
  type StoredChain,
  type StoredResponse,
  type StoredResponseRef,
} from '#application';
import type { Instant } from '#domain';
import { canRemoveSql, queryStoredBytes } from './stored-bytes.ts';

/** Stored responses are neither events nor a read model: this is the only copy. The ledger does not depend on them. */
export const storedResponseMigrations = [
  {
    id: 'stored-responses-1',
    sql: `
      create schema if not exists app;

      create table app.responses (
        id         text collate "C" primary key,
        account_id uuid not null,
        expires_at timestamptz not null,
        sealed_by  text collate "C" not null,
        box        text collate "C" not null
      );
      create index on app.responses (expires_at);
    `,
  },
  {
    id: 'stored-responses-2',
    sql: `
      create table app.response_items (
        account_id  uuid not null,
        id          text collate "C" not null,
        response_id text collate "C" not null references app.responses (id) on delete cascade,
        primary key (account_id, id)
      );
      create index on app.response_items (response_id);
    `,
  },
  {
    id: 'stored-responses-3',
    // Older responses contain their complete conversation, so they have no previous response.
    sql: `
      alter table app.responses add column previous_id text collate "C" references app.responses (id);
      create index on app.responses (previous_id) where previous_id is not null;
    `,
  },
] as const;

const FOREIGN_KEY_VIOLATION = '23503';
/** Conversations up to this size, which are most of them, are returned by the query that measures their size. */
const READ_AT_ONCE_BYTES = 64 * 1024;

const CHAIN_START_SQL = {
  id: 'app.responses r where r.id = $1',
  item: 'app.response_items i join app.responses r on r.id = i.response_id where i.id = $1 and i.account_id = $2',
};

/**
 * Selects the response that `start` finds and, unless `isSingle`, all responses that it continues; the oldest first.
 */
const buildChainSql = (start: string, isSingle: boolean) => `
  with recursive chain as (
    select r.id, r.previous_id, r.sealed_by, r.box, 1 as part from ${start} and r.account_id = $2 and r.expires_at > $3
    union all
    select r.id, r.previous_id, r.sealed_by, r.box, part + 1 from chain join app.responses r on r.id = chain.previous_id
    where r.account_id = $2 and ${!isSingle}
  ),
  sized as (select *, sum(octet_length(box)) over () as bytes from chain)
  select id, sealed_by, bytes, case when bytes <= ${READ_AT_ONCE_BYTES} then box end as box from sized order by part desc`;

/**
 * Deletes up to 1,000 expired responses that meet `start` and that no response continues. Also deletes each expired
 * response that only a deleted one continued.
 */
const buildRemovalSql = (start: string) => `
  with recursive gone as (
    (select r.id, r.previous_id from app.responses r
     where ${start} and r.expires_at <= $1 and not exists (select from app.responses n where n.previous_id = r.id)
     limit 1000)
    union all
    select r.id, r.previous_id from gone join app.responses r on r.id = gone.previous_id
    where r.expires_at <= $1 and (select count(*) from app.responses n where n.previous_id = r.id) = 1
  )
  delete from app.responses where id in (select id from gone)`;

/** Locks the byte count before any response, in the same order as `save`, so that the two cannot deadlock. */
const REMOVED_RESPONSE_SQL = 'r.id = $2 and (select app.stored_for_update($3)) is not null';

export class PostgresResponseStore extends ResponseStore {
  constructor(private readonly pool: pg.Pool) {
    super();
  }

  async save(response: StoredResponse, maxBytes: number): Promise<boolean> {
    const { id, accountId, previousId, expiresAt, sealed, itemIds } = response;
    const saving = this.pool.query<{ saved: boolean }>({
      name: 'response-save',
      // The byte count of the account is locked, so concurrent requests cannot exceed the limit.
      text: `
        with used as materialized (select app.stored_for_update($2) as bytes),
        response as (
          insert into app.responses (id, account_id, previous_id, expires_at, sealed_by, box)
          select $1, $2, $3, $4::timestamptz, $5, $6 from used where bytes + octet_length($6) <= $8
          returning id
        ),
        items as (
          insert into app.response_items (account_id, id, response_id)
          select $2, item, response.id from response, unnest($7::text[]) as item on conflict do nothing
        )
        select exists (select from response) as saved`,
      values: [id, accountId, previousId, expiresAt, sealed.key, sealed.box, itemIds, maxBytes],
    });
    const { rows } = await saving.catch((error: unknown) => {
      throw isForeignKeyViolation(error) ? new PreviousResponseRemovedError() : error;
    });
    return rows[0]?.saved === true;
  }

  async find(ref: StoredResponseRef): Promise<StoredChain | undefined> {
    const { by, id, accountId, now, withoutPrevious = false, reserveMemory } = ref;
    const { rows } = await this.pool.query<StoredRow>({
      name: `response-find-by-${by}${withoutPrevious ? '-alone' : ''}`,
      text: buildChainSql(CHAIN_START_SQL[by], withoutPrevious),
      values: [id, accountId, now],
    });
    const last = rows.at(-1);
    if (!last) return undefined;
    const parts = last.box === null ? await this.loadBoxes(rows, () => reserveMemory(Number(last.bytes))) : rows;
    return parts && { id: last.id, parts: parts.map(({ sealed_by: key, box }) => ({ key, box: box as string })) };
  }

  async remove(accountId: string, id: string, now: Instant): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'response-expire',
      text: 'update app.responses set expires_at = $3 where id = $1 and account_id = $2 and expires_at > $3',
      values: [id, accountId, now],
    });
    await this.removeOnce({
      name: 'response-remove',
      text: buildRemovalSql(REMOVED_RESPONSE_SQL),
      values: [now, id, accountId],
    });
    return rowCount === 1;
  }

  async removeExpired(now: Instant): Promise<void> {
    const removal = { name: 'responses-remove', text: buildRemovalSql(canRemoveSql), values: [now] };
    while (await this.removeOnce(removal));
    await this.pool.query('delete from app.stored_bytes where bytes <= 0');
  }

  getStoredBytes(accountId: string): Promise<number> {
    return queryStoredBytes(this.pool, accountId);
  }

  /**
   * Returns whether anything was removed. If a new response continues one of the responses at the same time, none of
   * them is removed now; a later call removes the others.
   */
  private async removeOnce(removal: pg.QueryConfig): Promise<boolean> {
    try {
      return ((await this.pool.query(removal)).rowCount ?? 0) > 0;
    } catch (error) {
      if (isForeignKeyViolation(error)) return false;
      throw error;
    }
  }

  /** Loads the contents of rows that were only measured. @returns undefined if one of them has been removed since */
  private async loadBoxes(
    measured: readonly StoredRow[],
    reserveMemory: () => Promise<void>,
  ): Promise<readonly StoredRow[] | undefined> {
    await reserveMemory();
    const { rows } = await this.pool.query<Pick<StoredRow, 'id' | 'box'>>({
      name: 'response-boxes',
      text: 'select id, box from app.responses where id = any($1)',
      values: [measured.map(({ id }) => id)],
    });
    const boxes = new Map(rows.map(({ id, box }) => [id, box]));
    if (boxes.size < measured.length) return undefined;
    return measured.map((row) => ({ ...row, box: boxes.get(row.id) ?? null }));
  }
}

/** Whether a response would continue one that does not exist. */
function isForeignKeyViolation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === FOREIGN_KEY_VIOLATION;
}

interface StoredRow {
  readonly id: string;
  readonly sealed_by: string;
  /** Total size of all rows of the result. */
  readonly bytes: string;
  /** Null if the total size exceeds `READ_AT_ONCE_BYTES`. */
  readonly box: string | null;
}
