import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createStreams } from '#application';
import { type EventStore, NO_SNAPSHOTS, type StoredEvent, StreamStateCache } from '#kernel';
import { createHoldPair, createOpeningEvents } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

const MIB = 1024 * 1024;
const BUDGET_MIB = 64;
/** The estimate may be too low by a factor of two. */
const MAX_HEAP_MIB = 2 * BUDGET_MIB;

/** Numbers of accounts, and of ended and running requests in each of them. */
const WAVES = [
  { accounts: 40_000, ended: 0, running: 0 },
  { accounts: 1_500, ended: 1_000, running: 0 },
  { accounts: 1_500, ended: 0, running: 300 },
] as const;

/** More accounts are used than the memory budget of the cache has room for, with small and with large states. */
export const streamStateCache: Attack = {
  name: 'warm-streams',
  description: `43,000 accounts are used, whose states take about 500 MiB, with a budget of ${BUDGET_MIB} MiB`,
  async run(): Promise<Finding> {
    const garbage = createGarbageCollector();
    const before = garbage();
    const cache = new StreamStateCache(BUDGET_MIB * MIB);
    let maxHeapBytes = 0;
    let estimated = 0;
    for (const { accounts, ended, running } of WAVES) {
      const createEvents = createEventFactory(ended, running);
      const runtime = { generateId: randomUUID, sleep: async () => {}, reportError: () => {} };
      const streams = createStreams(createStore(createEvents), NO_SNAPSHOTS, runtime, cache);
      for (let i = 0; i < accounts; i++) await streams.accounts.read(randomUUID());
      maxHeapBytes = Math.max(maxHeapBytes, garbage() - before);
      estimated = Math.max(estimated, cache.bytes);
    }
    const measured = `${(maxHeapBytes / MIB).toFixed(0)} MiB of heap at most, estimated ${(estimated / MIB).toFixed(0)}; ${cache.size} streams cached at the end`;
    return { hasPassed: maxHeapBytes < MAX_HEAP_MIB * MIB && estimated <= BUDGET_MIB * MIB, measurements: measured };
  },
};

/** Returns a function that collects garbage and returns the bytes of heap in use. */
function createGarbageCollector(): () => number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
}

/** Returns a function that creates the events of a new account. A copy through JSON prevents shared objects. */
function createEventFactory(ended: number, running: number): () => readonly StoredEvent[] {
  return () => {
    const account = { id: randomUUID(), keyId: randomUUID() };
    const pairs = Array.from({ length: ended + running }, () => createHoldPair(account));
    const used = pairs.flatMap(([held, settled], i) => (i < ended ? [held, settled] : [held]));
    const events = [...createOpeningEvents(account), ...used].map((event, revision) => ({
      ...event,
      id: randomUUID(),
      revision,
    }));
    return (JSON.parse(JSON.stringify(events)) as StoredEvent[]).map((event) => ({ ...event, position: 1n }));
  };
}

/** A store in which every stream has events from `createEvents`. */
function createStore(createEvents: () => readonly StoredEvent[]): EventStore {
  return {
    async *read() {
      yield createEvents();
    },
  } as Partial<EventStore> as EventStore;
}
