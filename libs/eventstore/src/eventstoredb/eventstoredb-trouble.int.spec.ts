import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EventStoreDbEventStore } from '#eventstore';
import {
  type EventBatch,
  type NewEvent,
  NO_STREAM,
  pump,
  START_POSITION,
  type StoredEvent,
  StoreUnavailableError,
  type StreamHead,
} from '#kernel';
import { createTestRuntime, FakeEventStoreDb } from '#testing';

describe('the EventStoreDB event store', () => {
  let double: FakeEventStoreDb;
  let store: EventStoreDbEventStore;
  /** Appends to the streams of another program on the same server. */
  let others: EventStoreDbEventStore;
  let problems: string[];

  const openStore = (connectionString = double.connectionString, streamPrefixes = ['account-', 'topup-']) =>
    new EventStoreDbEventStore({ connectionString, streamPrefixes, onProblem: (problem) => problems.push(problem) });

  beforeEach(async () => {
    problems = [];
    double = await FakeEventStoreDb.start();
    store = openStore();
    others = openStore(undefined, ['other-', 'accounting-']);
    // The first connection can fail on a busy host. A process that starts retries it as well.
    await Promise.all([store, others].map((each) => retryUntilAvailable(() => each.readHead('account-1'))));
  });

  afterEach(async () => {
    await Promise.all([store.close(), others.close()]);
    double.stop();
  });

  const fact = (data: unknown = {}): NewEvent => ({ id: randomUUID(), type: 'Happened', data, metadata: {} });
  const facts = (count: number) => Array.from({ length: count }, () => fact());

  /** Retries until the store responds. The kernel repeats appends in the same way, with the same ids. */
  async function retryUntilAvailable<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        expect(error).toBeInstanceOf(StoreUnavailableError);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  async function follow(after: bigint, isEnough: (batch: EventBatch) => boolean): Promise<EventBatch[]> {
    const batches: EventBatch[] = [];
    for await (const batch of store.subscribe(after, new AbortController().signal)) {
      batches.push(batch);
      if (isEnough(batch)) break;
    }
    return batches;
  }

  test('returns the last position of its own streams, even if other programs append many events after it', async () => {
    expect(await store.readLastPosition()).toBe(START_POSITION);
    const { position } = (await store.append('account-1', NO_STREAM, facts(2))) as StreamHead;
    await others.append('other-1', NO_STREAM, facts(250));
    expect(await store.readLastPosition()).toBe(position);
  });

  test.each([
    ['credentials', 'rejects the credentials in EVENTSTORE_URL'],
    ['reading $all', 'does not allow its user to read $all: give it one of the readRoles ("$r") in the ACL of $all'],
    ['appending', 'does not allow its user to append to streams such as account-start'],
  ] as const)('fails its check at the start if the server rejects %s', async (what, sentence) => {
    double.deny(what);
    await expect(store.check()).rejects.toMatchObject({ name: 'EventStoreAccessError', message: sentence });
  });

  test('stores nothing in its check at the start, and reports a server that is not ready as unavailable', async () => {
    await store.check();
    expect([await store.readHead('account-start'), await store.readLastPosition()]).toEqual([
      undefined,
      START_POSITION,
    ]);
    double.setNotReady(true);
    await expect(store.check()).rejects.toThrow(StoreUnavailableError);
  });

  test('stores an append once if its response is lost and it is sent again', async () => {
    const events = facts(3);
    double.loseNextResponse();
    await expect(store.append('account-1', NO_STREAM, events)).rejects.toThrow(StoreUnavailableError);
    expect(await retryUntilAvailable(() => store.append('account-1', NO_STREAM, events))).toMatchObject({
      revision: 2,
    });
    expect(await store.readHead('account-1')).toMatchObject({ revision: 2 });
  });

  test('throws StoreUnavailableError for an append without a timely response, and accepts its retry', async () => {
    const impatient = openStore(`${double.connectionString}&defaultDeadline=50`);
    const events = facts(1);
    const release = double.holdResponses();
    await expect(impatient.append('account-1', NO_STREAM, events)).rejects.toThrow(StoreUnavailableError);
    release();
    expect(await store.append('account-1', NO_STREAM, events)).toMatchObject({ revision: 0 });
    await impatient.close();
  });

  test('fails the appends of a broken connection, and none of another connection', async () => {
    const otherDouble = await FakeEventStoreDb.start();
    const other = openStore(otherDouble.connectionString);
    const releases = [double.holdResponses(), otherDouble.holdResponses()];
    const answers = Promise.allSettled([
      store.append('account-1', NO_STREAM, facts(1)),
      other.append('account-1', NO_STREAM, facts(1)),
    ]);
    await Promise.all([
      double.waitUntil(({ append }) => append > 0),
      otherDouble.waitUntil(({ append }) => append > 0),
    ]);
    double.stop();
    for (const release of releases) release();
    expect(await answers).toMatchObject([
      { status: 'rejected', reason: { name: 'StoreUnavailableError' } },
      { status: 'fulfilled', value: { revision: 0 } },
    ]);
    expect([double.stats.batchAppend, otherDouble.stats.batchAppend]).toEqual([0, 0]);
    await other.close();
    otherDouble.stop();
  });

  test('reports a server that is not ready as unavailable, and uses it again once it is ready', async () => {
    double.setNotReady(true);
    await expect(store.append('account-1', NO_STREAM, facts(1))).rejects.toThrow(StoreUnavailableError);
    await expect(store.readHead('account-1')).rejects.toThrow(StoreUnavailableError);
    await expect(follow(START_POSITION, () => true)).rejects.toThrow(StoreUnavailableError);
    double.setNotReady(false);
    expect(await store.append('account-1', NO_STREAM, facts(1))).toMatchObject({ revision: 0 });
  });

  test('reports a lost cluster as unavailable without ending the process', async () => {
    const found = openStore(`esdb+discover://${double.address}?tls=false&maxDiscoverAttempts=1`);
    await found.append('account-1', NO_STREAM, facts(1));
    const following = (async () => {
      for await (const _ of found.subscribe(START_POSITION, new AbortController().signal));
    })();
    await double.waitUntil(({ read }) => read > 0);
    double.setNotReady(true);
    await expect(found.append('account-1', 0, facts(1))).rejects.toThrow(StoreUnavailableError);
    // The client starts to search for another node, and the old connection breaks during that.
    const lost = Promise.allSettled([found.append('account-1', 0, facts(1)), following]);
    double.stop();
    for (const outcome of await lost) expect(outcome).toMatchObject({ reason: { name: 'StoreUnavailableError' } });
    await found.close();
  });

  test('serves the first read after a restart of the server', async () => {
    const { position } = (await store.append('account-1', NO_STREAM, facts(2))) as StreamHead;
    await double.restart();
    expect(await store.readHead('account-1')).toEqual({ revision: 1, position });
    expect(problems).toEqual(['a read from the event store failed; retrying']);
  });

  test('rejects an append that is larger than the configured limit of the server', async () => {
    double.setMaxAppendBytes(1_000);
    const append = store.append('account-1', NO_STREAM, [fact({ text: 'x'.repeat(1_000) })]);
    await expect(append).rejects.toMatchObject({
      name: 'AppendTooLargeError',
      message: expect.stringContaining(' 1000 bytes '),
    });
    expect(await store.readHead('account-1')).toBeUndefined();
  });

  test('discovers the leader of a cluster', async () => {
    const found = openStore(`esdb+discover://${double.address}?tls=false`);
    expect(await found.append('account-1', NO_STREAM, facts(1))).toMatchObject({ revision: 0 });
    await found.close();
  });

  test('sends appends and reads to the leader of a cluster', async () => {
    const leader = await FakeEventStoreDb.start();
    double.setLeader(leader);
    const events = facts(1);
    await expect(store.append('account-1', NO_STREAM, events)).rejects.toThrow(StoreUnavailableError);
    expect(await store.append('account-1', NO_STREAM, events)).toMatchObject({ revision: 0 });
    const reader = openStore();
    expect(await reader.readHead('account-1')).toMatchObject({ revision: 0 });
    expect([double.stats.append, leader.stats.append]).toEqual([0, 1]);
    await reader.close();
    leader.stop();
  });

  test('makes at most 64 concurrent calls on a connection', async () => {
    const release = double.holdResponses();
    const appended = Promise.all(
      Array.from({ length: 100 }, (_, i) => store.append(`account-${i}`, NO_STREAM, facts(1))),
    );
    await double.waitUntil(({ append }) => append >= 64);
    const other = openStore();
    for (let i = 0; i < 5; i++) await other.readHead('account-1');
    expect(double.stats.append).toBe(64);
    release();
    expect((await appended).every((head) => head !== 'stale' && head.revision === 0)).toBe(true);
    await other.close();
  });

  test('returns no events of other programs from readAll and subscribe', async () => {
    await store.append('account-1', NO_STREAM, facts(1));
    await others.append('other-1', NO_STREAM, facts(1));
    await store.append('topup-1', NO_STREAM, facts(1));
    await others.append('accounting-1', NO_STREAM, facts(1));
    const seen: string[] = [];
    for await (const { events } of store.readAll(START_POSITION)) seen.push(...events.map(({ stream }) => stream));
    const batches = await follow(START_POSITION, ({ events }) => events.at(-1)?.stream === 'topup-1');
    expect(seen).toEqual(['account-1', 'topup-1']);
    expect(batches.flatMap(({ events }) => events).map(({ stream }) => stream)).toEqual(seen);
  });

  test('advances a subscriber past events of other programs', async () => {
    const { position } = (await store.append('account-1', NO_STREAM, facts(1))) as StreamHead;
    await others.append('other-1', NO_STREAM, facts(100));
    const [batch] = await follow(position, () => true);
    expect(batch?.events).toEqual([]);
    expect(batch?.position).toBeGreaterThan(position);
    const next = facts(1);
    await store.append('account-1', 0, next);
    const [after] = await follow(batch?.position as bigint, ({ events }) => events.length > 0);
    expect(after?.events.map(({ id }) => id)).toEqual(next.map(({ id }) => id));
  });

  test('reads the log once for all subscribers of a process, without a live subscription', async () => {
    const events = facts(600);
    for (let n = 0; n < 600; n += 200) await store.append('account-1', n - 1, events.slice(n, n + 200));
    const { entries: before } = double.stats;
    const last = (batch: EventBatch) => batch.events.at(-1)?.id === events.at(-1)?.id;
    const all = await Promise.all(Array.from({ length: 6 }, () => follow(START_POSITION, last)));
    for (const batches of all) expect(batches.flatMap((batch) => batch.events)).toHaveLength(600);
    expect(double.stats.entries - before).toBe(601); // one entry is the server's own
    expect(double.stats.subscribe).toBe(0);
  });

  test('loses and repeats no event while the server restarts many times', async () => {
    const [streams, appends] = [8, 40];
    const controller = new AbortController();
    const seen: StoredEvent[] = [];
    let position = START_POSITION;
    const pumped = pump(
      (after, signal) => store.subscribe(after, signal),
      {
        name: 'test',
        loadCheckpoint: async () => position,
        async apply(batch) {
          seen.push(...batch.events);
          position = batch.position;
          if (seen.length >= streams * appends) controller.abort();
        },
      },
      controller.signal,
      createTestRuntime({ sleep: () => new Promise((resolve) => setImmediate(resolve)) }),
    );
    const sent: string[] = [];
    await Promise.all(
      Array.from({ length: streams }, async (_, i) => {
        for (let n = 0; n < appends; n++) {
          const event = fact();
          sent.push(event.id);
          if (i === 0 && n % 8 === 0) await double.restart();
          if (i === 1 && n % 8 === 0) double.loseNextResponse();
          const appended = await retryUntilAvailable(() => store.append(`account-${i}`, n - 1, [event]));
          expect(appended).toMatchObject({ revision: n });
        }
      }),
    );
    await pumped;
    expect(seen.map(({ id }) => id).sort()).toEqual(sent.sort());
    expect(seen.every(({ position }, i) => i === 0 || position > (seen[i - 1] as StoredEvent).position)).toBe(true);
  });

  test('ends its subscriptions when it is closed', async () => {
    const following = follow(START_POSITION, () => false);
    await double.waitUntil(({ read }) => read > 0);
    await store.close();
    await following;
    await double.waitUntil(({ open }) => open === 0);
  });
});
