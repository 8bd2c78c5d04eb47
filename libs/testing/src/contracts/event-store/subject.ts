import { randomUUID } from 'node:crypto';
import { type EventStore, type NewEvent, NO_STREAM, type StoredEvent, type StreamHead } from '#kernel';

type Closable = EventStore & { close(): Promise<void> };

/** A store under test. */
export interface OpenedStore {
  readonly store: Closable & { readonly maxAppendBytes: number };
  /** Opens another store on the same events, as another process would. */
  openAnother(): Closable;
  /** Name prefix of the streams that subscriptions of the store include. */
  readonly prefix: string;
  /** Closes the store. Removes its data, except from a real server. */
  close(): Promise<void>;
}

/** Returns a name that no other test uses. */
export function createStreamName({ prefix }: OpenedStore): string {
  return `${prefix}${randomUUID()}`;
}

export function createEvent(data: unknown = {}): NewEvent {
  return { id: randomUUID(), type: 'Happened', data, metadata: {} };
}

export function createEvents(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, i) => createEvent({ i }));
}

/** Appends events. @throws Error if the append is stale */
export async function appendEvents(
  store: EventStore,
  stream: string,
  expected: number,
  events: readonly NewEvent[],
): Promise<StreamHead> {
  const head = await store.append(stream, expected, events);
  if (head === 'stale') throw new Error(`${stream} does not end at ${expected}`);
  return head;
}

/** Appends an event and returns its position. Only events of the test follow, because the tests run in turn. */
export async function readEndPosition(openedStore: OpenedStore): Promise<bigint> {
  return (await appendEvents(openedStore.store, createStreamName(openedStore), NO_STREAM, [createEvent()])).position;
}

export async function readAll(store: EventStore, stream: string, after = NO_STREAM): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const batch of store.read(stream, after)) events.push(...batch);
  return events;
}

export async function readHistory(store: EventStore, after: bigint): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const batch of store.readAll(after)) events.push(...batch.events);
  return events;
}

export function getIds(events: readonly { readonly id: string }[]): string[] {
  return events.map(({ id }) => id);
}

export function isAscending(values: readonly bigint[]): boolean {
  return values.every((value, i) => i === 0 || value > (values[i - 1] as bigint));
}

/** Whether the events of each stream are in the order of their revisions, from `first` on and without a gap. */
export function isInStreamOrder(events: readonly StoredEvent[], first = 0): boolean {
  const next = new Map<string, number>();
  return events.every(({ stream, revision }) => {
    const expected = next.get(stream) ?? first;
    next.set(stream, revision + 1);
    return revision === expected;
  });
}

/** Subscribes in the background and collects events until it is stopped. */
export class Follower {
  readonly events: StoredEvent[] = [];
  position: bigint;
  private readonly controller = new AbortController();
  private readonly done: Promise<void>;
  private failure: unknown;
  private waiting: {
    readonly isMet: () => boolean;
    readonly resolve: () => void;
    readonly reject: (e: unknown) => void;
  }[] = [];

  constructor(store: EventStore, after: bigint) {
    this.position = after;
    this.done = this.run(store, after).catch((error) => {
      this.failure = error;
      for (const { reject } of this.waiting) reject(error);
    });
  }

  /** Resolves when all events up to `position` have been received. */
  waitForPosition(position: bigint): Promise<void> {
    return this.waitUntil(() => this.position >= position);
  }

  waitUntil(isMet: () => boolean): Promise<void> {
    if (isMet()) return Promise.resolve();
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => this.waiting.push({ isMet, resolve, reject }));
  }

  async stop(): Promise<void> {
    this.controller.abort();
    await this.done;
  }

  private async run(store: EventStore, after: bigint): Promise<void> {
    for await (const batch of store.subscribe(after, this.controller.signal)) {
      this.events.push(...batch.events);
      this.position = batch.position;
      const satisfied = this.waiting.filter(({ isMet }) => isMet());
      this.waiting = this.waiting.filter((waiting) => !satisfied.includes(waiting));
      for (const { resolve } of satisfied) resolve();
    }
  }
}
