/**
 * Read models, snapshots and cursors are made from one history of facts. Beside another one, as by a wrong EVENTSTORE_URL, they would be
 * taken for ahead of it, and be dropped for all who run beside the right one. So the first fact of theirs is kept with them.
 */
import { type EventReader, START_POSITION } from '#kernel';
import { createClient } from '#postgres';
import { StartError } from './start-error.ts';

export const originMigrations = [
  {
    id: 'origin-1',
    sql: 'create table es.origin (first_fact text not null, one boolean primary key default true check (one))',
  },
] as const;

/** @throws StartError where the database has what was made from other facts than the store has */
export async function assertSameEventStore(
  connectionString: string,
  store: Pick<EventReader, 'readAll'>,
): Promise<void> {
  const first = await loadFirstEventId(store);
  const client = createClient({ connectionString, name: 'start' });
  await client.connect();
  try {
    if (first !== undefined)
      await client.query('insert into es.origin (first_fact) values ($1) on conflict do nothing', [first]);
    const { rows } = await client.query<{ first_fact: string }>('select first_fact from es.origin');
    const storedEventId = rows[0]?.first_fact;
    if (storedEventId === first) return;
    const has = first === undefined ? 'no facts' : 'others';
    throw new StartError(
      `The event store has ${has}, and the database was filled from facts that it has not: EVENTSTORE_URL or DATABASE_URL is that of another installation, or facts are lost.`,
    );
  } finally {
    await client.end();
  }
}

async function loadFirstEventId(store: Pick<EventReader, 'readAll'>): Promise<string | undefined> {
  for await (const { events } of store.readAll(START_POSITION)) if (events[0]) return events[0].id;
  return undefined;
}
