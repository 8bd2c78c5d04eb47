import { type DecodedEventStore, type EventReader, type EventSchema, type EventStore, withUpcasting } from '#kernel';
import { EventStoreDbEventStore } from './eventstoredb/eventstoredb-event-store.ts';
import { PostgresEventStore } from './postgres/postgres-event-store.ts';

export interface ClosableEventStore extends EventStore {
  /** Whether it answers, and can be used. @throws StoreUnavailableError, EventStoreAccessError */
  check(): Promise<void>;
  /**
   * Somebody waits to see what was appended: followers of this process look for it now. Undefined where they are told of it in any
   * case.
   */
  pollNow?(): void;
  close(): Promise<void>;
}

/** An event store whose facts are all of today's versions. */
export interface OpenedEventStore extends DecodedEventStore {
  check(): Promise<void>;
  readonly pollNow: (() => void) | undefined;
  close(): Promise<void>;

  /** The facts in the versions in which they were written, of all types. For audits. */
  readonly rawReader: EventReader;
}

export interface EventStoreAddress {
  /** `esdb://…`; undefined: the event store in PostgreSQL. */
  readonly eventStoreUrl: string | undefined;
  readonly databaseUrl: string;
  readonly categories: readonly string[];
  readonly eventSchema: EventSchema;
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Opens the event store that is configured. */
export function openEventStore({ eventSchema, ...address }: EventStoreAddress): OpenedEventStore {
  const stored = openAdapter(address);
  const [check, close] = [() => stored.check(), () => stored.close()];
  const pollNow = stored.pollNow?.bind(stored);
  return { ...withUpcasting(stored, eventSchema), rawReader: stored, check, pollNow, close };
}

function openAdapter(address: Omit<EventStoreAddress, 'eventSchema'>): ClosableEventStore {
  const { eventStoreUrl, databaseUrl, categories, onProblem } = address;
  const shared = { streamPrefixes: categories.map((category) => `${category}-`), onProblem };
  if (eventStoreUrl === undefined) return new PostgresEventStore({ connectionString: databaseUrl, ...shared });
  return new EventStoreDbEventStore({ connectionString: eventStoreUrl, ...shared });
}
