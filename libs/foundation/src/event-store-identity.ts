/**
 * Read models, snapshots and checkpoints are built from one event log, and the id of its first event is stored with
 * them. A process with another log, for example because of another EVENTSTORE_URL, does not start. If its log were
 * shorter, it would consider this data to be ahead of the log. It would then drop the data, also for the processes with
 * the correct log. If its log were longer, it would add events of its own log to this data.
 */
import type pg from 'pg';
import { type EventReader, START_POSITION } from '#kernel';
import { connectClient } from '#postgres';
import { StartError } from './start-error.ts';

export const originMigrations = [
  {
    id: 'origin-1',
    sql: 'create table es.origin (first_fact text not null, one boolean primary key default true check (one))',
  },
] as const;

/** @throws StartError if the database was built from another event log than that of the store */
export async function assertSameEventStore(
  connectionString: string,
  store: Pick<EventReader, 'readAll'>,
): Promise<void> {
  const first = await loadFirstEventId(store);
  const client = await connectClient({ connectionString, name: 'start' });
  try {
    let storedEventId = await loadOrigin(client);
    // Only the first process records it, so that a user who may only read can start others.
    if (storedEventId === undefined && first !== undefined) {
      await client.query('insert into es.origin (first_fact) values ($1) on conflict do nothing', [first]);
      storedEventId = await loadOrigin(client);
    }
    if (storedEventId === first) return;
    const has = first === undefined ? 'no events' : 'other events';
    throw new StartError(
      `The event store has ${has}, but the database was built from events that it does not have: EVENTSTORE_URL or DATABASE_URL belongs to another installation, or events were lost.`,
    );
  } finally {
    await client.end();
  }
}

async function loadOrigin(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ first_fact: string }>('select first_fact from es.origin');
  return rows[0]?.first_fact;
}

async function loadFirstEventId(store: Pick<EventReader, 'readAll'>): Promise<string | undefined> {
  for await (const { events } of store.readAll(START_POSITION)) if (events[0]) return events[0].id;
  return undefined;
}
