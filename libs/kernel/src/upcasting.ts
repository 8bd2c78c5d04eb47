/**
 * Facts outlive the code that wrote them. Each type of fact has versions: what is appended carries the latest one in
 * its metadata, where that is not the first, and what is read is turned into the latest one, so that no other code knows
 * that older ones exist.
 */
import type { NewEvent, StoredEvent } from './message.ts';
import type { EventBatch, EventReader, EventStore, UnreadableEvent } from './ports.ts';

/** The data of a fact of one version as data of the next. Pure: id, type, place and booking time stay as they are. */
// biome-ignore lint/suspicious/noExplicitAny: every version has a shape of its own, known only to its upcaster
export type Upcaster = (data: any) => unknown;

/** The facts that a program knows. */
export interface EventSchema {
  /** For each type the upcasters from version 1 on: the latest version is one more than there are upcasters. */
  readonly upcasters: Readonly<Record<string, readonly Upcaster[]>>;
  /** Raised when an upcaster is corrected, so that what was folded from its old results is not used any more. */
  readonly revision: number;
  /** Unknown types that a reader of the log may skip. Decisions on a stream skip nothing. */
  readonly skippable: ReadonlySet<string>;
}

/** A fact that this program cannot understand: a newer one wrote it. Whatever follows from it must wait. */
export class UnknownEventError extends Error {
  override readonly name = 'UnknownEventError';

  constructor(
    readonly type: string,
    where: string,
  ) {
    super(`${where} is a ${type} that this program does not know; a newer one is needed`);
  }
}

/** For the default branch of a fold, which the compiler proves unreachable and a newer program's facts could reach. */
export function throwUnknownEvent(event: never): never {
  const { type, stream = 'a stream' } = event as StoredEvent;
  throw new UnknownEventError(type, `a fact of ${stream}`);
}

/** The version in which facts of a type are appended. */
export function getLatestVersion(type: string, { upcasters }: EventSchema): number {
  return (findUpcasters(type, upcasters)?.length ?? 0) + 1;
}

/** Whether facts of this type and version can be read. */
export function isKnownEvent(type: string, version: number, { upcasters }: EventSchema): boolean {
  const chain = findUpcasters(type, upcasters);
  return chain !== undefined && version <= chain.length + 1;
}

/** Differs whenever a fact may be read differently: a part of the version of whatever is kept of folded facts. */
export function toSchemaFingerprint({ upcasters, revision }: EventSchema): string {
  const changed = Object.entries(upcasters).filter(([, chain]) => chain.length > 0);
  return [`r${revision}`, ...changed.map(([type, chain]) => `${type}.${chain.length + 1}`).sort()].join(' ');
}

/**
 * A fact as it is written today.
 * @throws UnknownEventError when its type is not known, or its version is newer
 */
export function upcast(event: StoredEvent, { upcasters }: EventSchema): StoredEvent {
  const chain = findUpcasters(event.type, upcasters);
  const version = event.metadata.version ?? 1;
  if (!chain || version > chain.length + 1) {
    const eventType = chain ? `${event.type} of version ${version}` : event.type;
    throw new UnknownEventError(
      eventType,
      `the fact at position ${event.position}, revision ${event.revision} of ${event.stream},`,
    );
  }
  if (version > chain.length) return event;
  let data: unknown = event.data;
  for (let i = version - 1; i < chain.length; i++) data = (chain[i] as Upcaster)(data);
  return { ...event, data };
}

export interface DecodedEventStore extends EventStore {
  /**
   * The same for readers of the log that a fact which cannot be read must not stop: their batches name it as `unreadable`. Who
   * folds one stream is stopped as by any other.
   */
  readonly lenient: EventReader;
}

/** Puts versions around an event store: once, where it is opened. */
export function withUpcasting(store: EventStore, schema: EventSchema): DecodedEventStore {
  const versions = new Map(Object.keys(schema.upcasters).map((type) => [type, getLatestVersion(type, schema)]));

  /** Not an async function: each append would pay for it. */
  function append(stream: string, expected: number, events: readonly NewEvent[]): ReturnType<EventStore['append']> {
    const stamped: NewEvent[] = [];
    for (const event of events) {
      const { id, type, data, metadata } = event;
      const version = versions.get(type);
      if (version === undefined)
        return Promise.reject(new TypeError(`${type} is not a type of fact that this program knows`));
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
    ...{ append, read, readHead, readLastPosition, lenient },
    readAll: (after) => stopAtUnreadable(lenient.readAll(after)),
    subscribe: (after, signal) => stopAtUnreadable(lenient.subscribe(after, signal)),
  };
}

/** Batches with what can be read of them, and apart from that what cannot. */
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

/** Batches as far as they are understood: what comes before an unread fact is given, and then the reader is stopped. */
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
