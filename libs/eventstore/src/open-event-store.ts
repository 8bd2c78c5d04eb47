import { type DecodedEventStore, type EventReader, type EventSchema, type EventStore, withUpcasting } from '#kernel';
import { EventStoreDbEventStore } from './eventstoredb/eventstoredb-event-store.ts';
import { PostgresEventStore } from './postgres/postgres-event-store.ts';

export interface ClosableEventStore extends EventStore {
  /**
   * Checks that the store responds. EventStoreDB: also that the user has the required rights.
   * @throws StoreUnavailableError if the store does not respond, or if PostgreSQL rejects the read;
   * EventStoreAccessError (EventStoreDB only) if the server rejects the user, a right is missing, or its certificate is
   * not accepted
   */
  check(): Promise<void>;
  /**
   * Checks that the user may append. Undefined if only an append can show that (EventStoreDB).
   * @throws StoreUnavailableError if a right is missing, or the store does not respond
   */
  checkAppendRight?(): Promise<void>;
  /**
   * Makes the subscriptions of this process poll sooner, because a caller waits for events that were just appended.
   * Undefined if the store notifies subscriptions of every append.
   */
  pollNow?(): void;
  /** Replaces the credentials by those in another address. Undefined if the store is in PostgreSQL. */
  replaceCredentials?(connectionString: string): void;
  close(): Promise<void>;
}

/**
 * An event store that returns events in their latest version. Reads of the log omit events of skippable types. An event
 * that cannot be read is an error, unless a read with `lenient` lists it.
 */
export interface OpenedEventStore extends DecodedEventStore {
  check(): Promise<void>;
  readonly checkAppendRight: (() => Promise<void>) | undefined;
  readonly pollNow: (() => void) | undefined;
  /** Undefined if the store is in PostgreSQL. */
  readonly replaceCredentials: ((connectionString: string) => void) | undefined;
  close(): Promise<void>;

  /**
   * Returns events of all types in the versions in which they were written, for code that must neither convert nor omit
   * events.
   */
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

/** Opens the configured event store. */
export function openEventStore({ eventSchema, ...address }: EventStoreAddress): OpenedEventStore {
  const stored = openAdapter(address);
  const [check, close] = [() => stored.check(), () => stored.close()];
  const checkAppendRight = stored.checkAppendRight?.bind(stored);
  const pollNow = stored.pollNow?.bind(stored);
  const replaceCredentials = stored.replaceCredentials?.bind(stored);
  return {
    ...withUpcasting(stored, eventSchema),
    rawReader: stored,
    check,
    checkAppendRight,
    pollNow,
    replaceCredentials,
    close,
  };
}

function openAdapter(address: Omit<EventStoreAddress, 'eventSchema'>): ClosableEventStore {
  const { eventStoreUrl, databaseUrl, categories, onProblem } = address;
  const shared = { streamPrefixes: categories.map((category) => `${category}-`), onProblem };
  if (eventStoreUrl === undefined) return new PostgresEventStore({ connectionString: databaseUrl, ...shared });
  return new EventStoreDbEventStore({ connectionString: eventStoreUrl, ...shared });
}
