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
export function latestVersion(type: string, { upcasters }: EventSchema): number {
  return (known(type, upcasters)?.length ?? 0) + 1;
}

/** Whether facts of this type and version can be read. */
export function isKnownEvent(type: string, version: number, { upcasters }: EventSchema): boolean {
  const chain = known(type, upcasters);
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
export function upcast(fact: StoredEvent, { upcasters }: EventSchema): StoredEvent {
  const chain = known(fact.type, upcasters);
  const version = fact.metadata.version ?? 1;
  if (!chain || version > chain.length + 1) {
    const what = chain ? `${fact.type} of version ${version}` : fact.type;
    throw new UnknownEventError(
      what,
      `the fact at position ${fact.position}, revision ${fact.revision} of ${fact.stream},`,
    );
  }
  if (version > chain.length) return fact;
  let data: unknown = fact.data;
  for (let i = version - 1; i < chain.length; i++) data = (chain[i] as Upcaster)(data);
  return { ...fact, data };
}

export interface DecodedEventStore extends EventStore {
  /**
   * The same for readers of the log that a fact which cannot be read must not stop: their batches name it as `unread`. Who
   * folds one stream is stopped as by any other.
   */
  readonly lenient: EventReader;
}

/** Puts versions around an event store: once, where it is opened. */
export function withUpcasting(store: EventStore, facts: EventSchema): DecodedEventStore {
  const versions = new Map(Object.keys(facts.upcasters).map((type) => [type, latestVersion(type, facts)]));

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
    for await (const events of store.read(stream, after)) yield events.map((fact) => upcast(fact, facts));
  }

  const head: EventStore['head'] = (stream) => store.head(stream);
  const end: EventStore['end'] = () => store.end();
  const lenient: EventReader = {
    read,
    head,
    end,
    history: (after) => sorted(store.history(after), facts),
    follow: (after, signal) => sorted(store.follow(after, signal), facts),
  };
  return {
    ...{ append, read, head, end, lenient },
    history: (after) => understood(lenient.history(after)),
    follow: (after, signal) => understood(lenient.follow(after, signal)),
  };
}

/** Batches with what can be read of them, and apart from that what cannot. */
async function* sorted(batches: AsyncIterable<EventBatch>, facts: EventSchema): AsyncGenerator<EventBatch> {
  for await (const { events, position } of batches) {
    const read: StoredEvent[] = [];
    const unread: UnreadableEvent[] = [];
    for (const fact of events) {
      if (facts.skippable.has(fact.type)) continue;
      try {
        read.push(upcast(fact, facts));
      } catch (error) {
        unread.push({ fact, error });
      }
    }
    yield unread.length > 0 ? { events: read, position, unread } : { events: read, position };
  }
}

/** Batches as far as they are understood: what comes before an unread fact is given, and then the reader is stopped. */
async function* understood(batches: AsyncIterable<EventBatch>): AsyncGenerator<EventBatch> {
  for await (const batch of batches) {
    const stop = batch.unread?.[0];
    if (!stop) {
      yield batch;
      continue;
    }
    const before = batch.events.filter(({ position }) => position < stop.fact.position);
    const last = before.at(-1);
    if (last) yield { events: before, position: last.position };
    throw stop.error;
  }
}

function known(type: string, upcasters: EventSchema['upcasters']): readonly Upcaster[] | undefined {
  return Object.hasOwn(upcasters, type) ? upcasters[type] : undefined;
}
