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
] as const;
