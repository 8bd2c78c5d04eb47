import { describe, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import { BlockedByEventError, type EventBatch, type EventSink, pump, UnknownEventError, withUpcasting } from '#kernel';

const quiet = { sleep: async () => {}, reportError: () => {}, chance: () => 0 };

async function filled(count: number): Promise<MemoryEventStore> {
  const store = new MemoryEventStore();
  for (let i = 0; i < count; i++) {
    await store.append(`s-${i}`, -1, [{ id: `${i}`, type: 'Counted', data: { i }, metadata: {} }]);
  }
  return store;
}

/** Collects events, and fails `failures` times: before or after it has applied a batch. */
function collector(wanted: number, failures: number, failAfterApplying = false) {
  const seen: number[] = [];
  let position = -1n;
  let left = failures;
  const done = new AbortController();
  const sink: EventSink = {
    name: 'collector',
    loadCheckpoint: async () => position,
    async apply(batch: EventBatch) {
      if (left > 0 && !failAfterApplying) {
        left--;
        throw new Error('not now');
      }
      seen.push(...batch.events.map(({ data }) => (data as { i: number }).i));
      position = batch.position;
      if (seen.length >= wanted) done.abort();
      if (left > 0) {
        left--;
        throw new Error('applied, but the response was lost');
      }
    },
  };
  return { sink, seen, done };
}

describe('pump', () => {
  test('delivers every event in order, including those that are appended later', async () => {
    const store = await filled(3);
    const { sink, seen, done } = collector(4, 0);
    const pumping = pump(store.subscribe.bind(store), sink, done.signal, quiet);
    await store.append('later', -1, [{ id: 'later', type: 'Counted', data: { i: 3 }, metadata: {} }]);
    await pumping;
    expect(seen).toEqual([0, 1, 2, 3]);
  });

  test('delivers a failed batch again', async () => {
    const store = await filled(3);
    const { sink, seen, done } = collector(3, 4);
    await pump(store.subscribe.bind(store), sink, done.signal, quiet);
    expect(seen).toEqual([0, 1, 2]);
  });

  test('does not repeat a batch that the sink had applied before it failed', async () => {
    const store = await filled(3);
    const { sink, seen, done } = collector(4, 1, true);
    const pumping = pump(store.subscribe.bind(store), sink, done.signal, quiet);
    await store.append('later', -1, [{ id: 'later', type: 'Counted', data: { i: 3 }, metadata: {} }]);
    await pumping;
    expect(seen).toEqual([0, 1, 2, 3]);
  });

  test('reports each failure and waits twice as long after each further one', async () => {
    const store = await filled(1);
    const { sink, done } = collector(1, 3);
    const waits: number[] = [];
    const alarms: string[] = [];
    await pump(store.subscribe.bind(store), sink, done.signal, {
      ...quiet,
      sleep: async (milliseconds) => void waits.push(milliseconds),
      reportError: (problem) => void alarms.push(problem),
    });
    expect(waits).toEqual([50, 100, 200]);
    expect(alarms).toHaveLength(3);
  });

  test('continues after any number of programming errors, reports each, and waits up to 5 s', async () => {
    const store = await filled(1);
    const { sink, seen, done } = collector(1, 0);
    const waits: number[] = [];
    const errors: unknown[] = [];
    const bug = new TypeError('x is not a function');
    const apply = async (batch: EventBatch) => {
      if (errors.length < 12) throw bug;
      await sink.apply(batch);
    };
    await pump(store.subscribe.bind(store), { ...sink, apply }, done.signal, {
      ...quiet,
      sleep: async (milliseconds) => void waits.push(milliseconds),
      reportError: (_, error) => void errors.push(error),
    });
    expect([seen, errors]).toEqual([[0], Array(12).fill(bug)]);
    expect(waits.slice(-5)).toEqual(Array(5).fill(5_000));
  });

  test('reports only once that an event blocks the sink, and continues when the sink can apply it', async () => {
    const store = await filled(3);
    const { sink, seen, done } = collector(3, 0);
    let tries = 0;
    const apply = async (batch: EventBatch) => {
      if (++tries < 5) throw new BlockedByEventError(0n, 'blocked at position 0', new Error('too many digits'));
      await sink.apply(batch);
    };
    const alarms: string[] = [];
    const alarm = (problem: string) => void alarms.push(problem);
    await pump(store.subscribe.bind(store), { ...sink, apply }, done.signal, { ...quiet, reportError: alarm });
    expect([seen, alarms]).toEqual([[0, 1, 2], ['blocked at position 0']]);
  });

  test('stops before an unknown event, reports it and retries', async () => {
    const store = await filled(2);
    await store.append('newer', -1, [{ id: 'newer', type: 'Measured', data: {}, metadata: {} }]);
    await store.append('later', -1, [{ id: 'later', type: 'Counted', data: { i: 3 }, metadata: {} }]);
    const { sink, seen, done } = collector(3, 0);
    const known = withUpcasting(store, { upcasters: { Counted: [] }, revision: 1, skippable: new Set() });
    const errors: unknown[] = [];
    const alarm = (_: string, error: unknown) => {
      errors.push(error);
      if (errors.length === 3) done.abort();
    };
    await pump(known.subscribe, sink, done.signal, { ...quiet, reportError: alarm });
    expect(seen).toEqual([0, 1]);
    expect(await sink.loadCheckpoint()).toBe(1n);
    expect(errors).toEqual(Array(3).fill(expect.any(UnknownEventError)));
  });
});
