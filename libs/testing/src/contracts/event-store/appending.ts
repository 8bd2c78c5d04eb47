import { describe, expect, test } from '@jest/globals';
import { AppendTooLargeError, NO_STREAM } from '#kernel';
import { sampleSize } from '../../sample-cases.ts';
import {
  appendEvents,
  createEvent,
  createEvents,
  createStreamName,
  getIds,
  type OpenedStore,
  readAll,
} from './subject.ts';

const ROUNDS = sampleSize(10, 4);
const CONTENDERS = 8;

export function testAppends(subject: () => OpenedStore): void {
  test('an append returns the new head of its stream', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const first = await appendEvents(store, stream, NO_STREAM, createEvents(3));
    const second = await appendEvents(store, stream, 2, createEvents(2));
    expect([first.revision, second.revision]).toEqual([2, 4]);
    expect(second.position).toBeGreaterThan(first.position);
    expect(await store.readHead(stream)).toEqual(second);
  });

  test.each([
    ['before the end of the stream', 3, 0],
    ['one after the end of the stream', 3, 3],
    ['far after the end of the stream', 3, 1_000],
    ['0, but the stream does not exist', 0, 0],
    ['NO_STREAM, but the stream has events', 3, NO_STREAM],
  ])('an append is stale and stores nothing if its expected revision is %s', async (_, stored, expected) => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const events = createEvents(stored);
    if (stored > 0) await appendEvents(store, stream, NO_STREAM, events);
    expect(await store.append(stream, expected, createEvents(2))).toBe('stale');
    expect(getIds(await readAll(store, stream))).toEqual(getIds(events));
  });

  test('an append that is repeated at the same revision is stored once, even after later appends', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const [first, second] = [createEvents(3), createEvents(2)];
    const head = await appendEvents(store, stream, NO_STREAM, first);
    expect(await store.append(stream, NO_STREAM, first)).toEqual(head);
    const later = await appendEvents(store, stream, 2, second);
    expect(await store.append(stream, NO_STREAM, first)).toEqual(head);
    expect(await store.append(stream, 2, second)).toEqual(later);
    expect(getIds(await readAll(store, stream))).toEqual(getIds([...first, ...second]));
  });

  test('concurrent appends with the same ids are one append', async () => {
    const { store, openAnother } = subject();
    const other = openAnother();
    const streams = Array.from({ length: ROUNDS }, () => createStreamName(subject()));
    await Promise.all(
      streams.map(async (stream) => {
        const events = createEvents(2);
        const results = await Promise.all(
          [store, other, store].map((target) => target.append(stream, NO_STREAM, events)),
        );
        expect(new Set(results.map((result) => result !== 'stale' && result.position)).size).toBe(1);
        expect(getIds(await readAll(store, stream))).toEqual(getIds(events));
      }),
    );
    await other.close();
  });

  test('an append with the same ids at another revision is stale', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const events = createEvents(2);
    await appendEvents(store, stream, NO_STREAM, events);
    expect(await store.append(stream, 0, events)).toBe('stale');
    expect(await readAll(store, stream)).toHaveLength(2);
  });

  describe('an append stores none of its events', () => {
    const [a, b, c, x] = createEvents(4) as [ReturnType<typeof createEvent>, ...ReturnType<typeof createEvent>[]];
    test.each([
      ['its first events are stored already', NO_STREAM, [a, b, c]],
      ['its first event is the last one of the stream', 0, [b, c]],
      ['its first event differs from the stored one', NO_STREAM, [x, b]],
      ['its last event differs from the stored one', NO_STREAM, [a, x]],
      ['only its middle is stored', NO_STREAM, [x, b, c]],
    ])('if %s', async (_, expected, events) => {
      const { store } = subject();
      const stream = createStreamName(subject());
      await appendEvents(store, stream, NO_STREAM, [a, b] as never);
      expect(await store.append(stream, expected, events as never)).toBe('stale');
      expect(getIds(await readAll(store, stream))).toEqual(getIds([a, b] as never));
    });
  });

  test('exactly one of several concurrent appends at one revision succeeds', async () => {
    const { store, openAnother } = subject();
    const stores = [store, openAnother()];
    const stream = createStreamName(subject());
    const winners: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const events = createEvents(CONTENDERS);
      const results = await Promise.all(
        events.map((event, i) => (stores[i % 2] as typeof store).append(stream, round - 1, [event])),
      );
      expect(results.filter((result) => result !== 'stale')).toHaveLength(1);
      winners.push((events[results.findIndex((result) => result !== 'stale')] as { id: string }).id);
    }
    expect(getIds(await readAll(store, stream))).toEqual(winners);
    await stores[1]?.close();
  });

  test('a stale append does not affect concurrent appends', async () => {
    const { store } = subject();
    const [stream, neighbour] = [createStreamName(subject()), createStreamName(subject())];
    const results = await Promise.all([
      store.append(stream, 7, createEvents(1)),
      store.append(stream, NO_STREAM, createEvents(1)),
      store.append(neighbour, NO_STREAM, createEvents(1)),
    ]);
    expect(results).toMatchObject(['stale', { revision: 0 }, { revision: 0 }]);
  });

  test.each([
    ['contains a bigint', { amount: 1n }],
    ['is undefined', undefined],
  ])('rejects an append whose data %s, stores nothing of it and does not affect another append', async (_, data) => {
    const { store } = subject();
    const [stream, neighbour] = [createStreamName(subject()), createStreamName(subject())];
    const [rejected, accepted] = await Promise.allSettled([
      store.append(stream, NO_STREAM, [createEvent(), { ...createEvent(), data }]),
      store.append(neighbour, NO_STREAM, [createEvent()]),
    ]);
    expect(rejected).toMatchObject({ status: 'rejected', reason: { name: 'TypeError' } });
    expect(accepted).toMatchObject({ status: 'fulfilled', value: { revision: 0 } });
    expect(await store.readHead(stream)).toBeUndefined();
  });

  describe('an append is rejected and stores nothing if the size limit is exceeded by', () => {
    test.each([
      ['one event', (bytes: number) => [createEvent('x'.repeat(bytes))]],
      ['its bytes, but not its characters', (bytes: number) => [createEvent('€'.repeat(bytes / 3 + 1))]],
      ['all events together', (bytes: number) => createEvents(20).map(() => createEvent('x'.repeat(bytes / 20)))],
      ['its metadata', (bytes: number) => [{ ...createEvent(), metadata: { actor: 'x'.repeat(bytes) } }]],
    ])('%s', async (_, tooMuch) => {
      const { store } = subject();
      const [stream, neighbour] = [createStreamName(subject()), createStreamName(subject())];
      const [rejected, accepted] = await Promise.allSettled([
        store.append(stream, NO_STREAM, tooMuch(store.maxAppendBytes)),
        store.append(neighbour, NO_STREAM, [createEvent()]),
      ]);
      expect(rejected).toMatchObject({ status: 'rejected', reason: expect.any(AppendTooLargeError) });
      expect(accepted).toMatchObject({ status: 'fulfilled', value: { revision: 0 } });
      expect(await store.readHead(stream)).toBeUndefined();
    });
  });

  test('stores concurrent appends just below the maximum size', async () => {
    const { store } = subject();
    const large = [createEvent('x'.repeat(store.maxAppendBytes - 200))];
    const streams = [createStreamName(subject()), createStreamName(subject())];
    const heads = await Promise.all(streams.map((stream) => store.append(stream, NO_STREAM, large)));
    expect(heads).toMatchObject(streams.map(() => ({ revision: 0 })));
  });

  test('rejects an append without events', async () => {
    await expect(subject().store.append(createStreamName(subject()), NO_STREAM, [])).rejects.toThrow(RangeError);
  });

  test('rejects an append to a stream that no subscription includes, and stores nothing', async () => {
    const { store } = subject();
    const stream = `unlisted-${createStreamName(subject())}`;
    await expect(store.append(stream, NO_STREAM, createEvents(1))).rejects.toThrow(RangeError);
    expect(await store.readHead(stream)).toBeUndefined();
  });
}
