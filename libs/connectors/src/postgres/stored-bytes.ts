import type pg from 'pg';

/**
 * Counts the stored bytes of each payer with triggers, so that every insertion, replacement and deletion is counted.
 */
export const storedBytesMigrations = [
  {
    id: 'stored-bytes-1',
    sql: `
      create table app.stored_bytes (
        account_id uuid primary key, -- or what paid for one request
        bytes      bigint not null
      );

      create function app.add_stored(account uuid, added bigint) returns void language sql as $$
        insert into app.stored_bytes as stored (account_id, bytes) values (account, added)
        on conflict (account_id) do update set bytes = stored.bytes + excluded.bytes
      $$;

      create function app.count_response() returns trigger language plpgsql as $$
      begin
        if tg_op = 'DELETE' then perform app.add_stored(old.account_id, -octet_length(old.box));
        else perform app.add_stored(new.account_id, octet_length(new.box));
        end if;
        return null;
      end $$;

      create function gateway.count_answer() returns trigger language plpgsql as $$
      begin
        if tg_op = 'DELETE' then
          perform app.add_stored(old.payer_id, -octet_length(old.answer));
        else
          perform app.add_stored(new.payer_id, coalesce(octet_length(new.answer), 0) - coalesce(octet_length(old.answer), 0));
        end if;
        return null;
      end $$;

      create trigger counted after insert or delete on app.responses
        for each row execute function app.count_response();
      create trigger counted after delete on gateway.answers
        for each row when (old.answer is not null) execute function gateway.count_answer();
      create trigger counted_anew after update of answer on gateway.answers
        for each row when (old.answer is distinct from new.answer) execute function gateway.count_answer();

      insert into app.stored_bytes (account_id, bytes)
      select account_id, sum(bytes) from (
        select account_id, octet_length(box) as bytes from app.responses
        union all
        select payer_id, octet_length(answer) from gateway.answers where answer is not null
      ) as stored group by account_id;
    `,
  },
  {
    id: 'stored-bytes-2',
    // A claim is inserted without a response, but a restored backup inserts rows with one.
    sql: `
      create trigger counted_at_once after insert on gateway.answers
        for each row when (new.answer is not null) execute function gateway.count_answer();
    `,
  },
  {
    id: 'stored-bytes-3',
    // Creates the row before it is locked, so that even the first bytes of an account are counted under a lock. Each
    // statement of the function sees what other transactions have committed.
    sql: `
      create function app.stored_for_update(account uuid) returns bigint language plpgsql as $$
      declare stored bigint;
      begin
        loop
          insert into app.stored_bytes values (account, 0) on conflict do nothing;
          select bytes into stored from app.stored_bytes where account_id = account for update;
          if found then return stored; end if;
        end loop;
      end $$;
    `,
  },
] as const;

/**
 * Number of the lock that lets only one process at a time remove expired rows. It is arbitrary, but must differ from
 * that of the lock with which the event store appends. With the same number, nothing would be removed during an append,
 * and a removal would block all appends.
 */
const SWEEP_LOCK = 7_301_967;

/** SQL condition: true if this process gets the lock for removing expired rows. */
export const canRemoveSql = `(select pg_try_advisory_xact_lock(${SWEEP_LOCK}))`;

export async function queryStoredBytes(pool: pg.Pool, accountId: string): Promise<number> {
  const { rows } = await pool.query<{ bytes: string }>({
    name: 'stored-bytes',
    text: 'select bytes from app.stored_bytes where account_id = $1',
    values: [accountId],
  });
  return Number(rows[0]?.bytes ?? 0);
}
