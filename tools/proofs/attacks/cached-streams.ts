import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createStreams } from '#application';
import { accountCodec, accountDecider } from '#domain';
import {
  type EventStore,
  fold,
  NO_SNAPSHOTS,
  type Snapshot,
  type SnapshotStore,
  type StoredEvent,
  StreamStateCache,
} from '#kernel';
import { createTestRuntime } from '../../../libs/testing/src/test-runtime.ts';
import { createHoldPair, createOpeningEvents } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

const MIB = 1024 * 1024;
const BUDGET_MIB = 64;
/** The estimate may be too low by a quarter. */
const MAX_HEAP_MIB = 1.25 * BUDGET_MIB;

/**
 * Numbers of accounts, and of ended and running requests in each of them. Two events of each ended request are stored.
 */
const WAVES = [
  { accounts: 40_000, ended: 0, running: 0, fromSnapshot: false },
  { accounts: 1_500, ended: 1_000, running: 0, fromSnapshot: false },
  { accounts: 1_500, ended: 0, running: 300, fromSnapshot: false },
  { accounts: 100_000, ended: 500, running: 0, fromSnapshot: true },
] as const;

/** More accounts are used than the memory budget of the cache has room for, with small and with large states. */
export const streamStateCache: Attack = {
  name: 'warm-streams',
  description: `143,000 accounts are used, whose states take about 10 GiB, with a budget of ${BUDGET_MIB} MiB`,
  async run(): Promise<Finding> {
    const garbage = createGarbageCollector();
    const before = garbage();
    const cache = new StreamStateCache(BUDGET_MIB * MIB);
    let maxHeapBytes = 0;
    let estimated = 0;
    for (const { accounts, ended, running, fromSnapshot } of WAVES) {
      const runtime = createTestRuntime({ sleep: async () => {} });
      const [store, snapshots] = fromSnapshot
        ? createSnapshotStore(ended)
        : [createStore(createEventFactory(ended, running)), NO_SNAPSHOTS];
      const streams = createStreams(store, snapshots, runtime, { cache });
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

/** Snapshots in which every account has `ended` ended holds of its own, and a store with the last event of each. */
function createSnapshotStore(ended: number): readonly [EventStore, SnapshotStore] {
  const events = createEventFactory(0, 0)() as readonly StoredEvent[];
  const { revision, position, id: lastEventId } = events.at(-1) as StoredEvent;
  const state = fold(accountDecider, accountDecider.getInitialState(), events as never);
  const emptyAccount = accountCodec.encode(state) as object;
  const load = async (): Promise<Snapshot> => {
    const resolved = [Array.from({ length: ended }, () => [randomUUID(), 'settled']), []];
    return { state: JSON.parse(JSON.stringify({ ...emptyAccount, resolved })), revision, position, lastEventId };
  };
  return [createStore(() => events.slice(-1)), { ...NO_SNAPSHOTS, load }];
}
