import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { type NewEvent, NO_STREAM, START_POSITION } from '#kernel';
import { sampleSize } from '../../sample-cases.ts';
import {
  appendEvents,
  createEvents,
  createStreamName,
  getIds,
  isAscending,
  isInStreamOrder,
  type OpenedStore,
  readAll,
  readEndPosition,
  readHistory,
} from './subject.ts';

/** Longer than a page of any adapter. */
const LONG_STREAM = 2_600;
const STREAMS = sampleSize(200, 60);
const APPENDS_EACH = 4;
/** So many that these streams and the long one together are longer than a page of the log of any adapter. */
const EVENTS_EACH = 6;

const DELICATE = {
  texts: ['', ' ', 'line\nbreak\r\n', '"quoted" \'twice\' \\ \\n', '\t\b\u0001\u007f', '{1,2}', 'null', '\u2028\u2029'],
  unicode: ['Grüße', '漢字', '👩‍👩‍👧‍👦', 'e\u0301', '\ufeff', '\ud800', 'نص عربي'],
  numbers: [0, -1, 0.1, 1e-7, 1.7976931348623157e308, Number.MAX_SAFE_INTEGER],
  amount: '123456789012345678901234567890',
  nested: { list: [[], {}, [null]], 'a key': { 'with "quotes"': true } },
};

export function testReads(subject: () => OpenedStore): void {
  test('returns the id, type, data and metadata of events as they were appended', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const events: NewEvent[] = [DELICATE, [], 'text', 0, null, { long: 'x'.repeat(100_000) }].map((data, i) => ({
      id: randomUUID(),
      type: `Type-${i} Grüße`,
      data,
      metadata: { request: `r${i}`, 'a "key"': 'ünï\ncode' },
    }));
    const before = Date.now();
    const { position } = await appendEvents(store, stream, NO_STREAM, events);
    const recorded = await readAll(store, stream);
    expect(recorded).toMatchObject(events.map((event, revision) => ({ ...event, stream, revision })));
    expect(recorded.at(-1)?.position).toBe(position);
    for (const { recordedAt } of recorded) {
      expect(new Date(recordedAt).toISOString()).toBe(recordedAt);
      expect(Math.abs(Date.parse(recordedAt) - before)).toBeLessThan(60_000);
    }
  });

  test('a stream that does not exist has no events and no head', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    expect([await readAll(store, stream), await readAll(store, stream, 5), await store.readHead(stream)]).toEqual([
      [],
      [],
      undefined,
    ]);
  });

  test('the last position is that of the last event of any stream', async () => {
    const { store } = subject();
    for (let i = 0; i < 3; i++) {
      const { position } = await appendEvents(store, createStreamName(subject()), NO_STREAM, createEvents(2));
      expect(await store.readLastPosition()).toBe(position);
    }
  });

  test('reads the events after a revision, across pages', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    const events = createEvents(LONG_STREAM);
    let expected = NO_STREAM;
    for (let from = 0; from < LONG_STREAM; from += 200)
      expected = (await appendEvents(store, stream, expected, events.slice(from, from + 200))).revision;
    const all = await readAll(store, stream);
    expect(getIds(all)).toEqual(getIds(events));
    expect([isInStreamOrder(all), isAscending(all.map(({ position }) => position))]).toEqual([true, true]);
    for (const after of [1_999, LONG_STREAM - 2, LONG_STREAM - 1, LONG_STREAM, 2 * LONG_STREAM])
      expect(getIds(await readAll(store, stream, after))).toEqual(getIds(events.slice(after + 1)));
  });

  test('lets a reader stop early', async () => {
    const { store } = subject();
    const stream = createStreamName(subject());
    await appendEvents(store, stream, NO_STREAM, createEvents(10));
    for await (const batch of store.read(stream, NO_STREAM)) {
      expect(batch[0]?.revision).toBe(0);
      break;
    }
    expect(await readAll(store, stream)).toHaveLength(10);
    expect(await readAll(store, stream, 0)).toHaveLength(9);
  });

  test('stores concurrent appends to many streams in one global order', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const positions: bigint[] = [];
    await Promise.all(
      Array.from({ length: STREAMS }, async () => {
        const stream = createStreamName(subject());
        for (let i = 0; i < APPENDS_EACH; i++)
          positions.push((await appendEvents(store, stream, i * EVENTS_EACH - 1, createEvents(EVENTS_EACH))).position);
      }),
    );
    const history = await readHistory(store, start);
    expect(new Set(getIds(history)).size).toBe(STREAMS * APPENDS_EACH * EVENTS_EACH);
    expect(history).toHaveLength(STREAMS * APPENDS_EACH * EVENTS_EACH);
    expect([isInStreamOrder(history), isAscending(history.map(({ position }) => position))]).toEqual([true, true]);
    // An append returns the position of its last event.
    const last = history.filter(({ revision }) => revision % EVENTS_EACH === EVENTS_EACH - 1);
    expect(last.map(({ position }) => position)).toEqual(positions.sort((a, b) => (a < b ? -1 : 1)));
  });

  test('readAll yields the events after a position, and reports how far it has read', async () => {
    const { store } = subject();
    const start = await readEndPosition(subject());
    const stream = createStreamName(subject());
    for (let i = 0; i < 5; i++) await appendEvents(store, stream, 2 * i - 1, createEvents(2));
    const all = await readHistory(store, start);
    expect(all.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const [i, { position }] of all.entries())
      expect(getIds(await readHistory(store, position))).toEqual(getIds(all.slice(i + 1)));
    let lastPosition = start;
    for await (const { events, position } of store.readAll(start)) {
      expect(position).toBeGreaterThanOrEqual(events.at(-1)?.position ?? lastPosition);
      lastPosition = position;
    }
    expect(lastPosition).toBeGreaterThanOrEqual(all.at(-1)?.position as bigint);
  });

  test('readAll from the start yields each stream without a gap, up to the last position', async () => {
    const { store, prefix } = subject();
    const last = await readEndPosition(subject());
    const history = await readHistory(store, START_POSITION);
    expect(history.at(-1)?.position).toBe(last);
    expect(history.every(({ stream }) => stream.startsWith(prefix))).toBe(true);
    expect([isInStreamOrder(history), isAscending(history.map(({ position }) => position))]).toEqual([true, true]);
  });
}
