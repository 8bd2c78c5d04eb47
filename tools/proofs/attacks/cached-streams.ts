import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createStreams } from '#application';
import { type EventStore, NO_SNAPSHOTS, type StoredEvent, StreamStateCache } from '#kernel';
import { opening, pair } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

const MIB = 1024 * 1024;
const BUDGET_MIB = 64;
/** What is estimated may take twice as much. */
const MOST_MIB = 2 * BUDGET_MIB;

/** Accounts of two kinds: so many, each with so many requests behind it or running now. */
const WAVES = [
  { accounts: 40_000, ended: 0, running: 0 },
  { accounts: 1_500, ended: 1_000, running: 0 },
  { accounts: 1_500, ended: 0, running: 300 },
] as const;

/** More accounts are used than there is memory for their states, large and small ones. */
export const warmStreams: Attack = {
  name: 'warm-streams',
  what: `43,000 accounts are used, which take some 500 MiB, with room for ${BUDGET_MIB} MiB`,
  async run(): Promise<Finding> {
    const garbage = collector();
    const before = garbage();
    const warm = new StreamStateCache(BUDGET_MIB * MIB);
    let most = 0;
    let estimated = 0;
    for (const { accounts, ended, running } of WAVES) {
      const facts = factsOf(ended, running);
      const runtime = { generateId: randomUUID, sleep: async () => {}, reportError: () => {} };
      const streams = createStreams(storeOf(facts), NO_SNAPSHOTS, runtime, warm);
      for (let i = 0; i < accounts; i++) await streams.accounts.read(randomUUID());
      most = Math.max(most, garbage() - before);
      estimated = Math.max(estimated, warm.bytes);
    }
    const measured = `${(most / MIB).toFixed(0)} MiB of heap at most, estimated ${(estimated / MIB).toFixed(0)}; ${warm.size} streams warm at the end`;
    return { held: most < MOST_MIB * MIB && estimated <= BUDGET_MIB * MIB, measured };
  },
};

/** Collects garbage. Returns the bytes of heap that are in use. */
function collector(): () => number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
}

/** As text, so that no two accounts share a fact. */
function factsOf(ended: number, running: number): () => readonly StoredEvent[] {
  return () => {
    const account = { id: randomUUID(), keyId: randomUUID() };
    const pairs = Array.from({ length: ended + running }, () => pair(account));
    const used = pairs.flatMap(([held, settled], i) => (i < ended ? [held, settled] : [held]));
    const facts = [...opening(account), ...used].map((fact, revision) => ({ ...fact, id: randomUUID(), revision }));
    return (JSON.parse(JSON.stringify(facts)) as StoredEvent[]).map((fact) => ({ ...fact, position: 1n }));
  };
}

/** Every stream of it is as long as these facts. */
function storeOf(facts: () => readonly StoredEvent[]): EventStore {
  return {
    async *read() {
      yield facts();
    },
  } as Partial<EventStore> as EventStore;
}
