import { expect, test } from '@jest/globals';
import { type EventStore, NO_STREAM, type StoredEvent } from '#kernel';
import { sampleSize } from '../../sample-cases.ts';
import {
  appendEvents,
  createEvent,
  createEvents,
  createStreamName,
  Follower,
  getIds,
  isAscending,
  isInStreamOrder,
  type OpenedStore,
  readEndPosition,
  readHistory,
} from './subject.ts';

const APPENDERS = 8;
const APPENDS_EACH = sampleSize(100, 30);
const STREAMS_EACH = 4;
/** Once in this many appends to its own streams, each appender also appends to a stream that all appenders share. */
const SHARED_EVERY = 10;
/** After this many events, the reconnecting follower starts another subscription at the end of a batch. */
const RECONNECT_AFTER_EVENTS = 50;
const MAX_ABORT_MS = 1_000;

export function testSubscriptions(subject: () => OpenedStore): void {
  test('a subscription yields existing events and those that are appended later', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const stream = createStreamName(subject());
    const events = createEvents(6);
    await appendEvents(store, stream, NO_STREAM, events.slice(0, 2));
    const follower = new Follower(store, start);
    for (let i = 2; i < events.length; i++)
      await follower.waitForPosition((await appendEvents(store, stream, i - 1, events.slice(i, i + 1))).position);
    await follower.stop();
    expect(getIds(follower.events)).toEqual(getIds(events));
    expect(follower.events).toEqual(await readHistory(store, start));
  });

  test('a subscription starts after its position, not at it', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const stream = createStreamName(subject());
    const { position } = await appendEvents(store, stream, NO_STREAM, createEvents(8));
    const all = await readHistory(store, start);
    for (const [i, event] of all.slice(0, -1).entries()) {
      const follower = new Follower(store, event.position);
      await follower.waitForPosition(position);
      await follower.stop();
      expect(getIds(follower.events)).toEqual(getIds(all.slice(i + 1)));
    }
    const follower = new Follower(store, position);
    const next = await appendEvents(store, stream, 7, createEvents(1));
    await follower.waitForPosition(next.position);
    await follower.stop();
    expect(follower.events.map(({ revision }) => revision)).toEqual([8]);
  });

  test('a subscription neither skips nor repeats an event during concurrent appends', async () => {
    const { store, openAnother } = subject();
    const stores = [store, openAnother(), openAnother()];
    const start = await readEndPosition(subject());
    const follower = new Follower(stores[2] as EventStore, start);
    const restless = new ReconnectingFollower(store, start);
    const shared = createStreamName(subject());
    const appended = Promise.all(
      Array.from({ length: APPENDERS }, (_, i) => appendRepeatedly(stores[i % 2] as EventStore, subject(), shared)),
    );
    await follower.waitUntil(() => follower.events.length >= APPENDERS * 10);
    const middle = follower.events.at(-1) as StoredEvent;
    const secondFollower = new Follower(stores[1] as EventStore, middle.position);

    const results = (await appended).flat();
    const last = results.reduce((highest, { position }) => (position > highest ? position : highest), 0n);
    await Promise.all([
      follower.waitForPosition(last),
      secondFollower.waitForPosition(last),
      restless.waitForPosition(last),
    ]);
    await Promise.all([follower.stop(), secondFollower.stop(), restless.stop()]);

    const { events } = follower;
    expect(events).toHaveLength(results.length);
    expect(getIds(events).sort()).toEqual(results.map(({ id }) => id).sort());
    expect([isInStreamOrder(events), isAscending(events.map(({ position }) => position))]).toEqual([true, true]);
    expect(getIds(secondFollower.events)).toEqual(getIds(events.slice(events.indexOf(middle) + 1)));
    expect(getIds(restless.events)).toEqual(getIds(events));
    expect(getIds(await readHistory(store, start))).toEqual(getIds(events));
    await Promise.all(stores.slice(1).map((otherStore) => otherStore.close()));
  });

  test('each of several subscriptions receives all events', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const followers = Array.from({ length: 3 }, () => new Follower(store, start));
    const { position } = await appendEvents(store, createStreamName(subject()), NO_STREAM, createEvents(5));
    await Promise.all(followers.map((follower) => follower.waitForPosition(position)));
    await Promise.all(followers.map((follower) => follower.stop()));
    for (const { events } of followers) expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4]);
  });

  test('an abort promptly ends a subscription that waits for events', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const follower = new Follower(store, start);
    await follower.waitForPosition(
      (await appendEvents(store, createStreamName(subject()), NO_STREAM, [createEvent()])).position,
    );
    const aborted = performance.now();
    await follower.stop();
    expect(performance.now() - aborted).toBeLessThan(MAX_ABORT_MS);
    expect(follower.events).toHaveLength(1);
  });

  test('a subscription with an aborted signal yields nothing', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    await appendEvents(store, createStreamName(subject()), NO_STREAM, [createEvent()]);
    for await (const batch of store.subscribe(start, AbortSignal.abort()))
      throw new Error(`received ${batch.events.length} events`);
  });
}

/** Ends its subscription regularly, and starts another at the last position that it received. */
class ReconnectingFollower {
  readonly events: StoredEvent[] = [];
  private position: bigint;
  private target: bigint | undefined;
  private readonly controller = new AbortController();
  private readonly done: Promise<void>;

  constructor(store: EventStore, after: bigint) {
    this.position = after;
    this.done = this.run(store);
  }

  waitForPosition(position: bigint): Promise<void> {
    this.target = position;
    if (this.isDone()) this.controller.abort(); // the subscription may be waiting for more events
    return this.done;
  }

  async stop(): Promise<void> {
    this.controller.abort();
    await this.done;
  }

  private async run(store: EventStore): Promise<void> {
    while (!this.controller.signal.aborted && !this.isDone()) {
      const leaveAt = this.events.length + RECONNECT_AFTER_EVENTS;
      for await (const batch of store.subscribe(this.position, this.controller.signal)) {
        this.events.push(...batch.events);
        this.position = batch.position;
        if (this.events.length >= leaveAt || this.isDone()) break;
      }
    }
  }

  private isDone(): boolean {
    return this.target !== undefined && this.position >= this.target;
  }
}

/** Appends to several new streams in turn, and sometimes to a shared one. Returns the id and position of each event. */
async function appendRepeatedly(store: EventStore, openedStore: OpenedStore, shared: string) {
  const streams = Array.from({ length: STREAMS_EACH }, () => createStreamName(openedStore));
  const stored: { readonly id: string; readonly position: bigint }[] = [];
  for (let i = 0; i < APPENDS_EACH; i++) {
    const event = createEvent({ i });
    const stream = streams[i % STREAMS_EACH] as string;
    const head = await appendEvents(store, stream, Math.floor(i / STREAMS_EACH) - 1, [event]);
    stored.push({ id: event.id, position: head.position });
    if (i % SHARED_EVERY === 0) stored.push(await appendAtEnd(store, shared));
  }
  return stored;
}

async function appendAtEnd(store: EventStore, stream: string) {
  const event = createEvent();
  for (;;) {
    const revision = (await store.readHead(stream))?.revision ?? NO_STREAM;
    const head = await store.append(stream, revision, [event]);
    if (head !== 'stale') return { id: event.id, position: head.position };
  }
}
