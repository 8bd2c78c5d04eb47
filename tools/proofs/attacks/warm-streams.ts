import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openStreams } from '#application';
import type { DomainEvent } from '#domain';
import { type EventStore, NO_SNAPSHOTS, type Recorded, WarmStreams } from '#kernel';
import type { Attack, Finding } from './attack.ts';

const MIB = 1024 * 1024;
const BUDGET_MIB = 64;
/** What is estimated may take twice as much. */
const MOST_MIB = 2 * BUDGET_MIB;
const AT = '2026-11-22T12:00:00.000Z';
const QUERY = {
  model: 'openai/gpt-5-mini',
  type: 'chat_completion',
  source: 'api',
  online: false,
  free: false,
} as const;

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
    const warm = new WarmStreams(BUDGET_MIB * MIB);
    let most = 0;
    let estimated = 0;
    for (const { accounts, ended, running } of WAVES) {
      const facts = factsOf(ended, running);
      const runtime = { newId: randomUUID, sleep: async () => {}, alarm: () => {} };
      const streams = openStreams(storeOf(facts), NO_SNAPSHOTS, runtime, warm);
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
function factsOf(ended: number, running: number): () => readonly Recorded[] {
  const held = (holdId: string): DomainEvent => ({
    type: 'FundsHeld',
    data: { holdId, keyId: null, amount: '1000', owner: 'gateway-1f3a9c02', expiresAt: AT, query: QUERY, at: AT },
  });
  const settled = (holdId: string) => ({ type: 'HoldSettled', data: { holdId, keyId: null, charged: '7' } });
  return () => {
    const facts: unknown[] = [{ type: 'AccountOpened', data: { at: AT } }];
    for (let i = 0; i < ended + running; i++) {
      const holdId = randomUUID();
      facts.push(held(holdId));
      if (i < ended) facts.push(settled(holdId));
    }
    const text = JSON.stringify(facts.map((fact, i) => ({ ...(fact as object), id: randomUUID(), revision: i })));
    return (JSON.parse(text) as Recorded[]).map((fact) => ({ ...fact, position: 1n }));
  };
}

/** Every stream of it is as long as these facts. */
function storeOf(facts: () => readonly Recorded[]): EventStore {
  return {
    async *read() {
      yield facts();
    },
  } as Partial<EventStore> as EventStore;
}
