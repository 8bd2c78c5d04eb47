import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { type NewEvent, NO_STREAM, START_POSITION } from '#kernel';
import {
  append,
  facts,
  here,
  historyOf,
  ids,
  isAscending,
  isInStreamOrder,
  newStream,
  type OpenedStore,
  readAll,
  SLOW_MACHINE_MS,
} from './subject.ts';

/** More than a page of any adapter. */
const LONG_STREAM = 2_600;
const STREAMS = 500;
const APPENDS_EACH = 4;
const EVENTS_EACH = 2;

const DELICATE = {
  texts: ['', ' ', 'line\nbreak\r\n', '"quoted" \'twice\' \\ \\n', '\t\b\u0001\u007f', '{1,2}', 'null', '\u2028\u2029'],
  unicode: ['Grüße', '漢字', '👩‍👩‍👧‍👦', 'e\u0301', '\ufeff', '\ud800', 'نص عربي'],
  numbers: [0, -1, 0.1, 1e-7, 1.7976931348623157e308, Number.MAX_SAFE_INTEGER],
  amount: '123456789012345678901234567890',
  nested: { list: [[], {}, [null]], 'a key': { 'with "quotes"': true } },
};

export function reading(subject: () => OpenedStore): void {
  test('events come back as they were', async () => {
    const { store } = subject();
    const stream = newStream(subject());
    const events: NewEvent[] = [DELICATE, [], 'text', 0, null, { long: 'x'.repeat(100_000) }].map((data, i) => ({
      id: randomUUID(),
      type: `Type-${i} Grüße`,
      data,
      metadata: { request: `r${i}`, 'a "key"': 'ünï\ncode' },
    }));
    const before = Date.now();
    const { position } = await append(store, stream, NO_STREAM, events);
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
    const stream = newStream(subject());
    expect([await readAll(store, stream), await readAll(store, stream, 5), await store.readHead(stream)]).toEqual([
      [],
      [],
      undefined,
    ]);
  });

  test('the end is the position of the last fact, whichever stream it is in', async () => {
    const { store } = subject();
    for (let i = 0; i < 3; i++) {
      const { position } = await append(store, newStream(subject()), NO_STREAM, facts(2));
      expect(await store.readLastPosition()).toBe(position);
    }
  });

  test('read gives what is behind a revision, across pages', async () => {
    const { store } = subject();
    const stream = newStream(subject());
    const events = facts(LONG_STREAM);
    let expected = NO_STREAM;
    for (let from = 0; from < LONG_STREAM; from += 200)
      expected = (await append(store, stream, expected, events.slice(from, from + 200))).revision;
    const all = await readAll(store, stream);
    expect(ids(all)).toEqual(ids(events));
    expect([isInStreamOrder(all), isAscending(all.map(({ position }) => position))]).toEqual([true, true]);
    for (const after of [0, 1_999, LONG_STREAM - 2, LONG_STREAM - 1, LONG_STREAM, 2 * LONG_STREAM])
      expect(ids(await readAll(store, stream, after))).toEqual(ids(events.slice(after + 1)));
  });

  test('a reader may stop early', async () => {
    const { store } = subject();
    const stream = newStream(subject());
    await append(store, stream, NO_STREAM, facts(10));
    for await (const batch of store.read(stream, NO_STREAM)) {
      expect(batch[0]?.revision).toBe(0);
      break;
    }
    expect(await readAll(store, stream)).toHaveLength(10);
  });

  test(
    'of thousands of appends to many streams at once each is stored, in one order for all',
    async () => {
      const { store } = subject();
      const start = await here(subject());
      const positions: bigint[] = [];
      await Promise.all(
        Array.from({ length: STREAMS }, async () => {
          const stream = newStream(subject());
          for (let i = 0; i < APPENDS_EACH; i++)
            positions.push((await append(store, stream, i * EVENTS_EACH - 1, facts(EVENTS_EACH))).position);
        }),
      );
      const history = await historyOf(store, start);
      expect(new Set(ids(history)).size).toBe(STREAMS * APPENDS_EACH * EVENTS_EACH);
      expect(history).toHaveLength(STREAMS * APPENDS_EACH * EVENTS_EACH);
      expect([isInStreamOrder(history), isAscending(history.map(({ position }) => position))]).toEqual([true, true]);
      // An append answers with the position of its last event.
      const last = history.filter(({ revision }) => revision % EVENTS_EACH === EVENTS_EACH - 1);
      expect(last.map(({ position }) => position)).toEqual(positions.sort((a, b) => (a < b ? -1 : 1)));
    },
    SLOW_MACHINE_MS,
  );

  test('history gives what is behind a position, and says how far it has seen', async () => {
    const { store } = subject();
    const start = await here(subject());
    const stream = newStream(subject());
    for (let i = 0; i < 5; i++) await append(store, stream, 2 * i - 1, facts(2));
    const all = await historyOf(store, start);
    expect(all.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const [i, { position }] of all.entries())
      expect(ids(await historyOf(store, position))).toEqual(ids(all.slice(i + 1)));
    let seen = start;
    for await (const { events, position } of store.readAll(start)) {
      expect(position).toBeGreaterThanOrEqual(events.at(-1)?.position ?? seen);
      seen = position;
    }
    expect(seen).toBeGreaterThanOrEqual(all.at(-1)?.position as bigint);
  });

  test('history from the start has every fact of each stream once', async () => {
    const { store, prefix } = subject();
    const last = await here(subject());
    const history = await historyOf(store, START_POSITION);
    expect(history.at(-1)?.position).toBe(last);
    expect(history.every(({ stream }) => stream.startsWith(prefix))).toBe(true);
    expect([isInStreamOrder(history), isAscending(history.map(({ position }) => position))]).toEqual([true, true]);
  });
}
