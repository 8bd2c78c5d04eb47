/**
 * Events outlive the code that wrote them, so every event type has versions. Events are appended in the latest version
 * that the release before can read, which the metadata contains unless it is 1. Events that are read are converted to
 * the latest version, so no other code has to handle older ones.
 */
import type { NewEvent, StoredEvent } from './message.ts';
import type { EventBatch, EventReader, EventStore, UnreadableEvent } from './ports.ts';

/** Converts event data from one version to the next. Pure; id, type, position and booking time do not change. */
// biome-ignore lint/suspicious/noExplicitAny: only the upcaster knows the schema of the version that it converts
export type Upcaster = (data: any) => unknown;

/** The event types and versions that a build can read. */
export interface EventSchema {
  /** For every type its upcasters from version 1 on. The latest version is the number of upcasters plus 1. */
  readonly upcasters: Readonly<Record<string, readonly Upcaster[]>>;
  /** Increased when an upcaster is corrected, so that states folded from its old results are no longer used. */
  readonly revision: number;
  /**
   * The version in which events of a type are appended, if that is not the latest one: the release before this one
   * cannot read the latest version yet, and both may run at once.
   */
  readonly appendVersions?: Readonly<Record<string, number>>;
  /** Unknown types that readers of the log may skip. Reads of one stream, for decisions, skip nothing. */
  readonly skippable: ReadonlySet<string>;
}

/** A newer build wrote an event that this build cannot read. Everything that depends on the event has to wait. */
export class UnknownEventError extends Error {
  override readonly name = 'UnknownEventError';

  constructor(
    readonly type: string,
    where: string,
  ) {
    super(`${where} is a ${type}, which this build cannot read; a newer build is required`);
  }
}

/**
 * For the default branch of a fold. The compiler considers it unreachable, but an event of a newer build would reach
 * it.
 * @throws UnknownEventError always
 */
export function throwUnknownEvent(event: never): never {
  const { type, stream = 'a stream' } = event as StoredEvent;
  throw new UnknownEventError(type, `an event of ${stream}`);
}

/** Returns the latest version of an event type that can be read; 1 if the type is unknown. */
export function getLatestVersion(type: string, { upcasters }: EventSchema): number {
  return (findUpcasters(type, upcasters)?.length ?? 0) + 1;
}

/** Returns the version in which events of a type are appended. */
export function getAppendVersion(type: string, schema: EventSchema): number {
  return schema.appendVersions?.[type] ?? getLatestVersion(type, schema);
}

/** Returns whether events of this type and version can be read. */
export function isKnownEvent(type: string, version: number, { upcasters }: EventSchema): boolean {
  const chain = findUpcasters(type, upcasters);
  return chain !== undefined && version <= chain.length + 1;
}

/**
 * Returns a text that changes with every new version of an event type and with `revision`. It is part of the version of
 * stored states.
 */
export function toSchemaFingerprint({ upcasters, revision }: EventSchema): string {
  const changed = Object.entries(upcasters).filter(([, chain]) => chain.length > 0);
  return [`r${revision}`, ...changed.map(([type, chain]) => `${type}.${chain.length + 1}`).sort()].join(' ');
}

/**
 * Converts an event to the latest version of its type.
 * @throws UnknownEventError if its type is unknown or its version is newer; any error of an upcaster
 */
export function upcast(event: StoredEvent, { upcasters }: EventSchema): StoredEvent {
  const chain = findUpcasters(event.type, upcasters);
  const version = event.metadata.version ?? 1;
  if (!chain || version > chain.length + 1) {
    const eventType = chain ? `${event.type} of version ${version}` : event.type;
    throw new UnknownEventError(
      eventType,
      `the event at position ${event.position}, revision ${event.revision} of ${event.stream},`,
    );
  }
  if (version > chain.length) return event;
  let data: unknown = event.data;
  for (let i = version - 1; i < chain.length; i++) data = (chain[i] as Upcaster)(data);
  return { ...event, data };
}

export interface DecodedEventStore extends EventStore {
  /**
   * For readers of the log that an unreadable event must not stop: their batches list it in `unreadable`. Reads
   * of one stream still fail on it.
   */
  readonly lenient: EventReader;
}

/**
 * Wraps an event store so that all events are read and appended in their latest version. Called where the store is
 * opened.
 */
export function withUpcasting(store: EventStore, schema: EventSchema): DecodedEventStore {
  const versions = new Map(Object.keys(schema.upcasters).map((type) => [type, getAppendVersion(type, schema)]));

  /** Not an async function, because that would add overhead to every append. */
  function append(stream: string, expected: number, events: readonly NewEvent[]): ReturnType<EventStore['append']> {
    const stamped: NewEvent[] = [];
    for (const event of events) {
      const { id, type, data, metadata } = event;
      const version = versions.get(type);
      if (version === undefined) return Promise.reject(new TypeError(`${type} is not a known event type`));
      stamped.push(version === 1 ? event : { id, type, data, metadata: { ...metadata, version } });
    }
    return store.append(stream, expected, stamped);
  }

  async function* read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    for await (const events of store.read(stream, after)) yield events.map((event) => upcast(event, schema));
  }

  const readHead: EventStore['readHead'] = (stream) => store.readHead(stream);
  const readLastPosition: EventStore['readLastPosition'] = () => store.readLastPosition();
  const lenient: EventReader = {
    read,
    readHead,
    readLastPosition,
    readAll: (after) => separateUnreadable(store.readAll(after), schema),
    subscribe: (after, signal) => separateUnreadable(store.subscribe(after, signal), schema),
  };
  return {
    append,
    read,
    readHead,
    readLastPosition,
    lenient,
    readAll: (after) => stopAtUnreadable(lenient.readAll(after)),
    subscribe: (after, signal) => stopAtUnreadable(lenient.subscribe(after, signal)),
  };
}

/** Separates the events that can be read from those that cannot, and drops those that may be skipped. */
async function* separateUnreadable(
  batches: AsyncIterable<EventBatch>,
  schema: EventSchema,
): AsyncGenerator<EventBatch> {
  for await (const { events, position } of batches) {
    const read: StoredEvent[] = [];
    const unreadable: UnreadableEvent[] = [];
    for (const event of events) {
      if (schema.skippable.has(event.type)) continue;
      try {
        read.push(upcast(event, schema));
      } catch (error) {
        unreadable.push({ event, error });
      }
    }
    yield unreadable.length > 0 ? { events: read, position, unreadable } : { events: read, position };
  }
}

/** Returns the events before the first unreadable one, then throws its error. */
async function* stopAtUnreadable(batches: AsyncIterable<EventBatch>): AsyncGenerator<EventBatch> {
  for await (const batch of batches) {
    const firstUnreadable = batch.unreadable?.[0];
    if (!firstUnreadable) {
      yield batch;
      continue;
    }
    const before = batch.events.filter(({ position }) => position < firstUnreadable.event.position);
    const last = before.at(-1);
    if (last) yield { events: before, position: last.position };
    throw firstUnreadable.error;
  }
}

function findUpcasters(type: string, upcasters: EventSchema['upcasters']): readonly Upcaster[] | undefined {
  return Object.hasOwn(upcasters, type) ? upcasters[type] : undefined;
}
