import pg from 'pg';
import {
  divide,
  PreviousResponseRemovedError,
  ResponseStore,
  type StoredChain,
  type StoredResponse,
  type StoredResponseRef,
  WorkParts,
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
/** The client copies and sends a parameter at once, so longer boxes are sent in sections: of a multiple of 3 bytes. */
const MAX_PARAMETER_BYTES = 3 * 1024 * 1024;
/** Length of the sections in which longer ones are read: a multiple of 4, so that each can be decoded. */
const SECTION_CHARACTERS = 64 * 1024;

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

/** PostgreSQL divides base64 into lines. */
const toBase64Sql = (parameter: string) => `replace(encode(${parameter}::bytea, 'base64'), E'\\n', '')`;

/** Retains a section until the end of the transaction. */
const SECTION_SQL = `select from set_config($1, ${toBase64Sql('$2')}, true)`;

/** Divides long boxes. Sections of bytes are found at once, unlike sections of text, whose characters are counted. */
const SECTIONS_SQL = `
  with boxes as materialized (select id, decode(box, 'escape') as box from app.responses where id = any($1))
  select id, n, encode(substr(box, n * ${SECTION_CHARACTERS} + 1, ${SECTION_CHARACTERS}), 'escape') as section
  from boxes, generate_series(0, (octet_length(box) - 1) / ${SECTION_CHARACTERS}) as n`;

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
    const { box } = response.sealed;
    const [lastSection = box, ...otherSections] = listSections(box).reverse();
    if (otherSections.length === 0) return this.insert(this.pool, response, { lastSection, sectionCount: 1, maxBytes });
    const client = await this.pool.connect();
    let isCommitted = false;
    try {
      await client.query('begin');
      for (const [i, section] of otherSections.reverse().entries())
        await client.query({ name: 'response-section', text: SECTION_SQL, values: [`app.section_${i + 1}`, section] });
      const sectionCount = otherSections.length + 1;
      const isSaved = await this.insert(client, response, { lastSection, sectionCount, maxBytes });
      await client.query('commit');
      isCommitted = true;
      return isSaved;
    } finally {
      client.release(!isCommitted); // a closed connection ends its transaction
    }
  }

  private async insert(
    database: Pick<pg.Pool, 'query'>,
    { id, accountId, previousId, expiresAt, sealed, itemIds }: StoredResponse,
    { lastSection, sectionCount, maxBytes }: InsertOptions,
  ): Promise<boolean> {
    const saving = database.query<{ saved: boolean }>({
      name: 'response-save',
      // The byte count of the account is locked, so concurrent requests cannot exceed the limit.
      text: `
        with used as materialized (select app.stored_for_update($2) as bytes),
        sealed as materialized (
          select concat(string_agg(current_setting('app.section_' || n), '' order by n), ${toBase64Sql('$6')}) as box
          from generate_series(1, $9 - 1) as n
        ),
        response as (
          insert into app.responses (id, account_id, previous_id, expires_at, sealed_by, box)
          select $1, $2, $3, $4::timestamptz, $5, box from used, sealed where bytes + octet_length(box) <= $8
          returning id
        ),
        items as (
          insert into app.response_items (account_id, id, response_id)
          select $2, item, response.id from response, unnest($7::text[]) as item on conflict do nothing
        )
        select exists (select from response) as saved`,
      values: [id, accountId, previousId, expiresAt, sealed.key, lastSection, itemIds, maxBytes, sectionCount],
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
    const boxes =
      last.box === null
        ? await this.loadBoxes(rows, () => reserveMemory(Number(last.bytes)))
        : rows.map(({ box }) => Buffer.from(box ?? '', 'base64'));
    return boxes && { id: last.id, parts: boxes.map((box, i) => ({ key: rows[i]?.sealed_by ?? '', box })) };
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

  /**
   * Loads the contents of rows that were only measured, in sections: the event loop would be held by a long row.
   * @returns undefined if one of them has been removed since
   */
  private async loadBoxes(
    measured: readonly StoredRow[],
    reserveMemory: () => Promise<void>,
  ): Promise<readonly Buffer[] | undefined> {
    await reserveMemory();
    const { rows } = await this.pool.query<StoredSection>({
      name: 'response-sections',
      text: SECTIONS_SQL,
      values: [measured.map(({ id }) => id)],
    });
    const sections = new Map<string, string[]>(measured.map(({ id }) => [id, []]));
    for (const { id, n, section } of rows) (sections.get(id) as string[])[n] = section;
    const boxes: Buffer[] = [];
    const work = new WorkParts();
    for (const box of sections.values()) {
      if (box.length === 0) return undefined;
      boxes.push(await decodeSections(box));
      await work.rest();
    }
    return boxes;
  }
}

function listSections(box: Buffer): Buffer[] {
  const sections: Buffer[] = [];
  for (let start = 0; start < box.length; start += MAX_PARAMETER_BYTES)
    sections.push(box.subarray(start, start + MAX_PARAMETER_BYTES));
  return sections;
}

async function decodeSections(sections: readonly string[]): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(sections.reduce((sum, { length }) => sum + length, 0));
  let size = 0;
  for await (const section of divide(...sections)) size += bytes.write(section, size, 'base64');
  return bytes.subarray(0, size);
}

/** Whether a response would continue one that does not exist. */
function isForeignKeyViolation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === FOREIGN_KEY_VIOLATION;
}

interface InsertOptions {
  /** The end of the box; the other sections are settings of the transaction. */
  readonly lastSection: Buffer;
  readonly sectionCount: number;
  readonly maxBytes: number;
}

interface StoredRow {
  readonly id: string;
  readonly sealed_by: string;
  /** Total size of all rows of the result. */
  readonly bytes: string;
  /** Null if the total size exceeds `READ_AT_ONCE_BYTES`. */
  readonly box: string | null;
}

interface StoredSection {
  readonly id: string;
  /** Position in the box, from 0. */
  readonly n: number;
  readonly section: string;
}
