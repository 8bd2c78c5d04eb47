/**
 * The numbers of records in the query history, so that their total needs no search. Triggers update them in the
 * transaction that changes the records, so that no writer can miss them: neither a projector of an earlier release nor a
 * command that deletes old records.
 */
import type pg from 'pg';

/** A day that a time range includes only in part is counted by an index, up to this number of records. */
const MAX_COUNTED_IN_PART = 10_000;
const DAY_MS = 86_400_000;
/** The last instant that `toISOString` and PostgreSQL format alike. */
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Key id of the counts of all records of an account, with and without keys. */
const ALL_KEYS = '';

/** Selects the counts that follow from the records of a table. Groups twice, because the second groups are few. */
function toCountsSql(table: string): string {
  return `select account_id, case grouping(key_id) when 1 then '${ALL_KEYS}' else key_id end as key_id, day,
                 sum(records)::bigint as records
            from (select account_id, key_id, (at at time zone 'UTC')::date as day, count(*) as records
                    from ${table} group by account_id, key_id, day) as counted
           group by grouping sets ((account_id, day), (account_id, key_id, day))
          having grouping(key_id) = 1 or key_id <> '${ALL_KEYS}'`;
}

/**
 * Creates the counts, their triggers, and a function that attaches both to a table of records. A rebuild attaches them to
 * its new table before this replaces the old one, so `finishRebuildSql` is part of this migration.
 */
export function createQueryCountMigration(finishRebuildSql: string) {
  return {
    id: 'query-counts-1',
    minContract: 2,
    changes: 'counts the records of the query history, and creates triggers that update the counts',
    locks: [{ table: 'books.queries', blocks: 'writes', millisecondsPerMillionRows: 1_000 }],
    sql: `
      create table books.query_counts (
        account_id uuid not null,
        key_id     text not null, -- empty for all records of the account
        day        date not null, -- of the request, in UTC
        records    bigint not null,
        primary key (account_id, key_id, day)
      ) with (fillfactor = 50);

      -- Adds the changed records to the counts. The argument of the trigger is 1 for new records, and -1 for old ones.
      create function books.count_queries() returns trigger language plpgsql
        set search_path = pg_catalog, pg_temp
      as $$
      begin
        -- In the order of the key, so that two writers lock the counts in the same order.
        insert into books.query_counts as total
        select account_id, key_id, day, tg_argv[0]::bigint * records
          from (${toCountsSql('changed')}) as changes order by account_id, key_id, day
        on conflict (account_id, key_id, day) do update set records = total.records + excluded.records;
        return null;
      end $$;

      create function books.forget_query_counts() returns trigger language plpgsql
        set search_path = pg_catalog, pg_temp
      as $$
      begin
        delete from books.query_counts;
        return null;
      end $$;

      -- Attaches the triggers to a table of records, which also locks it against writes, and counts its records.
      create function books.attach_query_counts(p_table regclass) returns void language plpgsql
        set search_path = pg_catalog, pg_temp
      as $$
      begin
        execute format('create trigger count_inserted after insert on %s
          referencing new table as changed for each statement execute function books.count_queries(''1'')', p_table);
        execute format('create trigger count_deleted after delete on %s
          referencing old table as changed for each statement execute function books.count_queries(''-1'')', p_table);
        execute format('create trigger count_updated after update on %s
          referencing new table as changed for each statement execute function books.count_queries(''1'')', p_table);
        execute format('create trigger count_replaced after update on %s
          referencing old table as changed for each statement execute function books.count_queries(''-1'')', p_table);
        execute format('create trigger count_truncated after truncate on %s
          for each statement execute function books.forget_query_counts()', p_table);
        delete from books.query_counts;
        execute format($sql$insert into books.query_counts ${toCountsSql('%s')}$sql$, p_table);
      end $$;

      revoke execute on function books.attach_query_counts(regclass) from public;
      select books.attach_query_counts('books.queries');
      ${finishRebuildSql}`,
  } as const;
}

/** Part of `finish_rebuild`: counts the records of the new table while nobody can change those of the old one. */
export const ATTACH_QUERY_COUNTS_SQL = `begin
          if p_name = 'queries' then
            lock table books.queries in share row exclusive mode;
            perform books.attach_query_counts(format('%I.queries', draft)::regclass);
          end if;
        end;`;

export interface CountedQueries {
  readonly accountId: string;
  readonly keyId?: string;
  /** First and last instant, in ISO 8601 with milliseconds and in UTC. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/**
 * Returns the number of records of an account or key in a time range. Complete days are counted already. Records of a
 * day that the range includes in part are counted by an index.
 * @returns undefined if such a day has more than `MAX_COUNTED_IN_PART` of these records
 */
export async function countQueries(
  pool: Pick<pg.Pool, 'query'>,
  { accountId, keyId, from, to }: CountedQueries,
): Promise<number | undefined> {
  const range = splitByDay(from, to);
  const values = [accountId, keyId ?? ALL_KEYS];
  const bind = (milliseconds: number) => `$${values.push(formatInstant(milliseconds))}`;
  const days = [
    ...(range.firstDay === undefined ? [] : [`and day >= ${bind(range.firstDay)}::date`]),
    ...(range.endDay === undefined ? [] : [`and day < ${bind(range.endDay)}::date`]),
  ];
  const owner = keyId === undefined ? 'account_id = $1' : 'account_id = $1 and key_id = $2';
  const parts = range.parts.map(([start, end]) => {
    const timeCondition = `at >= ${bind(start)}::timestamptz and at < ${bind(end)}::timestamptz`;
    return `select count(*) from (select from books.queries where ${owner} and ${timeCondition} limit ${MAX_COUNTED_IN_PART + 1}) as part`;
  });
  const { rows } = await pool.query<{ records: string; parts: number[] }>(
    `select coalesce(sum(records), 0)::text as records, array[${parts.map((sql) => `(${sql})`).join(', ')}]::int[] as parts
       from books.query_counts where account_id = $1 and key_id = $2 ${days.join(' ')}`,
    values,
  );
  const { records, parts: partCounts } = rows[0] ?? { records: '0', parts: [] };
  if (partCounts.some((count) => count > MAX_COUNTED_IN_PART)) return undefined;
  return partCounts.reduce((sum, count) => sum + count, Number(records));
}

interface RangeByDay {
  /** Start of the first complete day, and end of the last one, in milliseconds; undefined without a limit. */
  readonly firstDay: number | undefined;
  readonly endDay: number | undefined;
  /** Start and end, exclusive, of what the range includes of other days. */
  readonly parts: readonly (readonly [number, number])[];
}

/** Splits a range into complete days and what remains of the days at its ends. */
function splitByDay(from: string | undefined, to: string | undefined): RangeByDay {
  const start = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
  const end = to === undefined ? Number.POSITIVE_INFINITY : Date.parse(to) + 1;
  const firstDay = Math.ceil(start / DAY_MS) * DAY_MS;
  const endDay = Math.floor(end / DAY_MS) * DAY_MS;
  const parts = [
    [start, Math.min(firstDay, end)],
    [Math.max(firstDay, endDay), end],
  ] as const;
  return {
    firstDay: from === undefined ? undefined : firstDay,
    endDay: to === undefined ? undefined : endDay,
    parts: parts.filter(([partStart, partEnd]) => partStart < partEnd),
  };
}

function formatInstant(milliseconds: number): string {
  return new Date(Math.min(milliseconds, LAST_MS)).toISOString();
}

/** A count that differs from the records. */
export interface IncorrectQueryCount {
  readonly accountId: string;
  /** Null for all records of the account. */
  readonly keyId: string | null;
  readonly day: string;
  readonly stored: number;
  readonly actual: number;
}

/** Compares all counts with the records of the query history, in one snapshot. */
export async function findIncorrectQueryCounts(
  client: Pick<pg.Client, 'query'>,
): Promise<{ readonly comparedCount: number; readonly incorrect: readonly IncorrectQueryCount[] }> {
  const { rows } = await client.query<{ compared: string; incorrect: IncorrectQueryCount[] }>(
    `select count(*) as compared,
            coalesce(json_agg(json_build_object('accountId', account_id, 'keyId', nullif(key_id, '${ALL_KEYS}'), 'day', day,
                                                'stored', stored, 'actual', actual) order by account_id, key_id, day)
                     filter (where stored <> actual), '[]') as incorrect
       from (select account_id, key_id, day, coalesce(stored.records, 0) as stored, coalesce(actual.records, 0) as actual
               from books.query_counts as stored
               full join (${toCountsSql('books.queries')}) as actual using (account_id, key_id, day)) as both_counts`,
  );
  return { comparedCount: Number(rows[0]?.compared ?? 0), incorrect: rows[0]?.incorrect ?? [] };
}
