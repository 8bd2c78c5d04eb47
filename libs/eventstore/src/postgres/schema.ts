/**
 * Advisory lock that a transaction holds in shared mode from its first insert of events to its end. The number is
 * arbitrary, but must be the same for all processes.
 */
export const APPEND_LOCK_ID = 7_301_966;

/**
 * The tables of the event store in PostgreSQL. The events are in one append-only table.
 *
 * A revision is unique in its stream. This makes an append conditional without updating a row: the first writer that
 * inserts revision n+1 after an existing n succeeds, and all other writers insert nothing.
 */
export const eventStoreMigrations = [
  {
    id: 'event-store-1',
    sql: `
      create schema es;

      create table es.events (
        position    bigint generated always as identity primary key,
        stream      text collate "C" not null,
        revision    bigint not null,
        id          uuid not null,
        type        text collate "C" not null,
        data        json not null,
        metadata    json not null,
        recorded_at timestamptz not null default clock_timestamp(),
        unique (stream, revision)
      );

      create function es.refuse_change() returns trigger language plpgsql as $$
      begin
        raise exception 'events are never changed or removed (% on %)', tg_op, tg_table_name;
      end $$;
      create trigger append_only before update or delete or truncate on es.events
        for each statement execute function es.refuse_change();
      revoke update, delete, truncate on es.events from public, current_user;

      -- Appends to many streams in one transaction: all of it or nothing. Texts are newline-separated lists (JSON has no
      -- raw newline), every list has one entry per event, and p_behind is the revision the event must follow (-1: none,
      -- or an event of this call). A stream has one append in a call at most. Returns the positions. Events that are all
      -- stored already with the same ids count as appended. Raises ES409 with the stale streams as its detail.
      -- The transaction id is taken first, so that every position comes with an id that a reader can wait for.
      -- There is one sensible plan, by the indexes: to plan again for each append takes longer than the append.
      create function es.append(
        p_streams text, p_behind bigint[], p_revisions bigint[], p_ids uuid[], p_types text, p_data text, p_metadata text
      ) returns bigint[] language plpgsql
        set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
      as $$
      declare
        positions bigint[];
        stale text;
      begin
        perform pg_current_xact_id();
        with inserted as (
          insert into es.events (stream, revision, id, type, data, metadata)
          select e.stream, e.revision, e.id, e.type, e.data::json, e.metadata::json
            from unnest(string_to_array(p_streams, E'\\n'), p_behind, p_revisions, p_ids, string_to_array(p_types, E'\\n'),
                        string_to_array(p_data, E'\\n'), string_to_array(p_metadata, E'\\n'))
                 as e(stream, behind, revision, id, type, data, metadata)
           where e.behind < 0
              or (select true from es.events b where b.stream = e.stream and b.revision = e.behind)
              on conflict (stream, revision) do nothing
          returning position)
        select array_agg(position order by position) into positions from inserted;
        if cardinality(positions) = cardinality(p_ids) then
          return positions;
        end if;

        -- Something was not inserted. That is right where all events of a stream are stored already, and nowhere else.
        with known as (
          select e.nr, e.stream, k.position, k.position = any (coalesce(positions, '{}')) as inserted
            from unnest(string_to_array(p_streams, E'\\n'), p_revisions, p_ids) with ordinality as e(stream, revision, id, nr)
            left join lateral (
              select b.position from es.events b
               where b.stream = e.stream and b.revision = e.revision and b.id = e.id) as k on true)
        select array_agg(known.position order by known.nr),
               (select string_agg(s.stream, E'\\n')
                  from (select k.stream from known k group by k.stream
                        having count(k.position) < count(*) or bool_or(k.inserted) <> bool_and(k.inserted)) as s)
          into positions, stale
          from known;
        if stale is not null then
          raise exception 'stale' using errcode = 'ES409', detail = stale;
        end if;
        return positions;
      end $$;

      create table es.snapshots (
        stream   text collate "C" primary key,
        version  text not null,
        revision bigint not null,
        position bigint not null,
        state    json not null
      );

      create table es.checkpoints (
        reader   text primary key,
        position bigint not null
      );
    `,
  },
  {
    id: 'due-1',
    sql: `
      create table es.due (
        workflow text collate "C" not null,
        id       text collate "C" not null,
        at       timestamptz not null,
        woken    bigint not null default 0,
        failures integer not null default 0,
        token    bigint not null default 0,
        primary key (workflow, id)
      );
      create index on es.due (workflow, at);
    `,
  },
  {
    // A build from before events had versions would misread new events. After this migration its appends fail.
    id: 'event-store-2',
    sql: 'alter function es.append(text, bigint[], bigint[], uuid[], text, text, text) rename to append_facts',
  },
  {
    id: 'due-2',
    sql: `
      alter table es.due add column ahead boolean not null default false;
      drop index es.due_workflow_at_idx;
      create index on es.due (workflow, ahead desc, at);
    `,
  },
  {
    id: 'snapshots-2',
    sql: `
      alter table es.snapshots
        add column last uuid, -- the id of the last fact
        add column mac bytea`,
  },
  {
    // Readers can wait for every transaction that has taken a position, because each first takes a transaction id and
    // the lock `APPEND_LOCK_ID`. Creating the trigger waits for transactions that are already inserting.
    id: 'event-store-3',
    sql: `
      create function es.show_append() returns trigger language plpgsql as $$
      begin
        perform pg_current_xact_id(), pg_advisory_xact_lock_shared(${APPEND_LOCK_ID});
        return null;
      end $$;
      create trigger shown before insert on es.events for each statement execute function es.show_append();
    `,
  },
  {
    // The number of a wake-up never repeats, not even after its row was deleted. Otherwise a process that has lost its
    // lease could delete a later timer, which has the number that it read.
    id: 'due-3',
    sql: `
      create sequence es.due_woken;
      select setval('es.due_woken', coalesce(max(woken), 0) + 1) from es.due;
      alter table es.due alter column woken set default nextval('es.due_woken');
      alter sequence es.due_woken owned by es.due.woken;
    `,
  },
  {
    id: 'event-store-4',
    minContract: 0,
    changes: 'creates es.append_events, which returns lost appends as a result, and the accepted contracts',
    sql: `
      -- The programs that may append, by the contract that they follow when they write (docs/changing.md).
      create table es.contracts (
        oldest         integer not null,
        newest         integer not null,
        oldest_version text not null, -- the first release that follows the oldest contract
        newest_version text not null, -- the first release that follows the newest contract
        one            boolean primary key default true check (one)
      );
      insert into es.contracts values (1, 1, '1.0.0', '1.0.0');

      -- Appends to many streams in one transaction. Each append is stored completely or not at all, independently of the
      -- others. Texts are newline-separated lists (JSON has no raw newline). Every list has one entry per event, in the
      -- order of streams. p_expected is the revision that the event must follow; it is -1 for the first event of a new
      -- stream, and for all events of an append after its first one. A stream has one append in a call at most.
      -- Returns one entry per append, in the order of the call. If it is stored: the revision and position of its last
      -- event. That is so too if all its events were stored already with the same ids. If it is stale, which means that
      -- its stream is not at the expected revision: the last revision and position of the stream (null: no stream).
      -- Raises ES426 if the contract is not accepted.
      -- The transaction id and the lock are taken first. So every position comes with an id that a reader can wait for,
      -- and a transaction that ends a contract under the exclusive lock is followed by no append under that contract.
      -- The first event of each append is inserted before all others. If it is inserted, no other transaction can insert
      -- the next revisions of the stream. If not, nothing of the append is, so nothing has to be rolled back.
      -- It runs with the rights of its owner, so that other users can append without a right to insert events. Only those
      -- to whom "npm run grant" grants it may call it.
      -- There is one sensible plan, by the indexes: to plan again for each append takes longer than the append.
      create function es.append_events(
        p_contract integer, p_streams text, p_expected bigint[], p_revisions bigint[], p_ids uuid[], p_types text,
        p_data text, p_metadata text, out appended boolean[], out revisions bigint[], out positions bigint[]
      ) language plpgsql security definer set search_path = pg_catalog, pg_temp
        set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
      as $$
      declare
        accepted es.contracts;
        streams text[] := string_to_array(p_streams, E'\\n');
        inserted text[];
      begin
        perform pg_current_xact_id(), pg_advisory_xact_lock_shared(${APPEND_LOCK_ID});
        select * into accepted from es.contracts;
        if not coalesce(p_contract between accepted.oldest and accepted.newest, false) then
          raise exception 'contract % is not accepted: the database accepts the contracts % to %', p_contract,
            accepted.oldest, accepted.newest using errcode = 'ES426';
        end if;

        with first as (
          insert into es.events (stream, revision, id, type, data, metadata)
          select e.stream, e.revision, e.id, e.type, e.data::json, e.metadata::json
            from unnest(streams, p_expected, p_revisions, p_ids, string_to_array(p_types, E'\\n'),
                        string_to_array(p_data, E'\\n'), string_to_array(p_metadata, E'\\n'))
                 as e(stream, expected, revision, id, type, data, metadata)
           where e.revision = e.expected + 1
             and (e.expected < 0
                  or (select true from es.events b where b.stream = e.stream and b.revision = e.expected))
              on conflict (stream, revision) do nothing
          returning stream, position)
        select array_agg(stream), array_agg(position order by position) into inserted, positions from first;
        if cardinality(positions) = cardinality(p_ids) then
          appended := array_fill(true, array[cardinality(p_ids)]);
          revisions := p_revisions;
          return;
        end if;

        if cardinality(inserted) > 0 then
          insert into es.events (stream, revision, id, type, data, metadata)
          select e.stream, e.revision, e.id, e.type, e.data::json, e.metadata::json
            from unnest(streams, p_expected, p_revisions, p_ids, string_to_array(p_types, E'\\n'),
                        string_to_array(p_data, E'\\n'), string_to_array(p_metadata, E'\\n'))
                 as e(stream, expected, revision, id, type, data, metadata)
           where e.revision > e.expected + 1 and e.stream = any (inserted);
        end if;

        select array_agg(a.position is not null order by a.nr),
               array_agg(case when a.position is null then t.revision else a.revision end order by a.nr),
               array_agg(coalesce(a.position, t.position) order by a.nr)
          into appended, revisions, positions
          from (select e.stream, min(e.nr) as nr, max(e.revision) as revision,
                       case when count(k.position) = count(*) then max(k.position) end as position
                  from unnest(streams, p_revisions, p_ids) with ordinality as e(stream, revision, id, nr)
                  left join lateral (
                    select b.position from es.events b
                     where b.stream = e.stream and b.revision = e.revision and b.id = e.id) as k on true
                 group by e.stream) as a
          left join lateral (
            select b.revision, b.position from es.events b
             where a.position is null and b.stream = a.stream order by b.revision desc limit 1) as t on true;
      end $$;
      revoke execute on function es.append_events from public;
    `,
  },
  {
    id: 'event-store-5',
    minContract: 1,
    changes: 'removes es.append_facts, with which only programs from before version 1.0.0 append',
    sql: 'drop function es.append_facts',
  },
  {
    id: 'event-store-6',
    minContract: 1,
    changes: 'accepts contract 2, whose programs read the events that the next release writes',
    sql: "update es.contracts set newest = 2, newest_version = '1.1.0'",
  },
  {
    id: 'event-store-7',
    minContract: 2,
    changes: 'accepts contract 1 no longer, whose programs cannot read the new versions of events',
    sql: `
      select pg_advisory_xact_lock(${APPEND_LOCK_ID}); -- no append under the ended contract follows
      update es.contracts set oldest = 2, oldest_version = '1.1.0'`,
  },
] as const;
