import type { EventStore } from '#kernel';
import { EventStoreDbEventStore } from './eventstoredb/eventstoredb-event-store.ts';
import { PostgresEventStore } from './postgres/postgres-event-store.ts';

export type ClosableEventStore = EventStore & { close(): Promise<void> };

export interface EventStoreAddress {
  /** `esdb://…`; undefined: the event store in PostgreSQL. */
  readonly eventStoreUrl: string | undefined;
  readonly databaseUrl: string;
  readonly categories: readonly string[];
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Opens the event store that is configured. */
export function openEventStore({
  eventStoreUrl,
  databaseUrl,
  categories,
  onProblem,
}: EventStoreAddress): ClosableEventStore {
  if (eventStoreUrl === undefined) return new PostgresEventStore({ connectionString: databaseUrl, onProblem });
  const streamPrefixes = categories.map((category) => `${category}-`);
  return new EventStoreDbEventStore({ connectionString: eventStoreUrl, streamPrefixes, onProblem });
}
