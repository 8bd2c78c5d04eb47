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
  hurry?(): void;
  close(): Promise<void>;
}

/** An event store whose facts are all of today's versions. */
export interface OpenedEventStore extends DecodedEventStore {
  check(): Promise<void>;
  readonly hurry: (() => void) | undefined;
  close(): Promise<void>;

  /** The facts in the versions in which they were written, of all types. For audits. */
  readonly stored: EventReader;
}

export interface EventStoreAddress {
  /** `esdb://…`; undefined: the event store in PostgreSQL. */
  readonly eventStoreUrl: string | undefined;
  readonly databaseUrl: string;
  readonly categories: readonly string[];
  readonly knownFacts: EventSchema;
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Opens the event store that is configured. */
export function openEventStore({ knownFacts, ...address }: EventStoreAddress): OpenedEventStore {
  const stored = openAdapter(address);
  const [check, close] = [() => stored.check(), () => stored.close()];
  const hurry = stored.hurry?.bind(stored);
  return { ...withUpcasting(stored, knownFacts), stored, check, hurry, close };
}

function openAdapter(address: Omit<EventStoreAddress, 'knownFacts'>): ClosableEventStore {
  const { eventStoreUrl, databaseUrl, categories, onProblem } = address;
  const shared = { streamPrefixes: categories.map((category) => `${category}-`), onProblem };
  if (eventStoreUrl === undefined) return new PostgresEventStore({ connectionString: databaseUrl, ...shared });
  return new EventStoreDbEventStore({ connectionString: eventStoreUrl, ...shared });
}
