import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { DomainEvent } from '#domain';
import { EventStoreDbEventStore, PostgresEventStore } from '#eventstore';
import { startEmbeddedPostgres } from '#foundation';
import { type EventStore, NO_STREAM } from '#kernel';
import { ProjectionProgress, projections } from '#projections';
import { EventStoreDbDouble } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { ProofCluster } from '../../cluster.ts';
import { useOf } from '../../processes.ts';
import { opening, pair, type SampleAccount } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

const FACTS_PER_SECOND = 3_000;
const LASTS_MS = 20_000;
const ACCOUNTS = 600;
const TICK_MS = 10;
const SHOWN_WITHIN_MS = 120_000;
/** Roles that follow the log, each in a process of its own. */
const FOLLOWERS = ['projector', 'sagas'] as const;

/** What they may cost beside what the same facts cost them in PostgreSQL. */
const MOST_OF_POSTGRES = 1.5;

/** Facts faster than a live subscription of EventStoreDB takes them, for everything that follows the log. */
export const busyLog: Attack = {
  name: 'busy-log',
  what: `${FACTS_PER_SECOND} facts a second for ${LASTS_MS / 1_000} s in EventStoreDB, then in PostgreSQL, with all read models and sagas`,
  async run(directory): Promise<Finding> {
    const double = await EventStoreDbDouble.start();
    const inDouble = () => {
      const { connectionString } = double;
      return new EventStoreDbEventStore({ connectionString, streamPrefixes: ['account-'] });
    };
    try {
      const directories = [path.join(directory, 'eventstoredb'), path.join(directory, 'postgres')] as const;
      const ours = await followed(directories[0], { EVENTSTORE_URL: double.connectionString }, inDouble);
      const { dropped, subscribe, pages, entries } = double.seen;
      const peer = await followed(
        directories[1],
        {},
        (connectionString) => new PostgresEventStore({ connectionString }),
      );
      const ratio = ours.cpuPerFact / peer.cpuPerFact;
      const perProcess = (read: number) => read / FOLLOWERS.length / ours.facts;
      return {
        held: dropped === 0 && ours.failed === 0 && ours.shownMs < SHOWN_WITHIN_MS && ratio <= MOST_OF_POSTGRES,
        measured: [
          `${ours.facts} facts at ${Math.round(ours.perSecond)}/s (PostgreSQL: ${Math.round(peer.perSecond)}/s)`,
          `${subscribe} subscriptions, ${dropped} dropped, ${ours.failed} batches failed`,
          `each process read each fact ${perProcess(entries - pages).toFixed(2)} times, in pages of ${Math.round(1 / perProcess(pages))}`,
          `shown ${(ours.shownMs / 1_000).toFixed(1)} s behind the last`,
          `${(ours.cpuPerFact * 1e6).toFixed(0)} µs of CPU for a fact in ${FOLLOWERS.join(' and ')}, ${ratio.toFixed(2)} of PostgreSQL`,
        ].join('; '),
      };
    } finally {
      double.stop();
    }
  },
};

interface Followed {
  readonly facts: number;
  readonly perSecond: number;
  /** Batches that a read model or a saga could not apply. */
  readonly failed: number;
  readonly shownMs: number;
  /** In seconds, of all followers together. */
  readonly cpuPerFact: number;
}

/** Starts what follows a log, and keeps it busy. */
async function followed(
  directory: string,
  settings: Readonly<Record<string, string>>,
  open: (databaseUrl: string) => EventStore & { close(): Promise<void> },
): Promise<Followed> {
  const cluster = await ProofCluster.start(directory, 0, settings);
  const database = await startEmbeddedPostgres(directory);
  const store = open(database.url);
  try {
    const cpuBefore = cpuOf(cluster);
    const { facts, perSecond } = await busy(store);
    const shownMs = await shown(database.url, await store.readLastPosition());
    const cpuPerFact = (cpuOf(cluster) - cpuBefore) / facts;
    const printed = FOLLOWERS.flatMap((name) => cluster.processes.get(name)?.printed ?? []);
    const failed = printed.filter((line) => line.includes('could not apply')).length;
    return { facts, perSecond, failed, shownMs, cpuPerFact };
  } finally {
    await store.close();
    await database.close();
    await cluster.stop();
  }
}

function cpuOf({ processes }: ProofCluster): number {
  return useOf(FOLLOWERS.map((name) => processes.get(name)?.pid as number)).cpuSeconds;
}

interface Account extends SampleAccount {
  revision: number;
}

/** Appends at the rate, as requests do: two facts at a time, each of another account. */
async function busy(store: EventStore): Promise<{ readonly facts: number; readonly perSecond: number }> {
  const accounts: Account[] = Array.from({ length: ACCOUNTS }, () => ({
    id: randomUUID(),
    keyId: randomUUID(),
    revision: NO_STREAM,
  }));
  const append = async (account: Account, facts: readonly DomainEvent[]) => {
    const events = facts.map((fact) => ({ ...fact, id: randomUUID(), metadata: {} }));
    const head = await store.append(`account-${account.id}`, account.revision, events);
    if (head === 'stale') throw new Error('another process writes to this store');
    account.revision = head.revision;
  };
  await Promise.all(accounts.map((account) => append(account, opening(account))));
  const idle = [...accounts];
  const began = performance.now();
  let facts = 0;
  while (performance.now() - began < LASTS_MS) {
    const due = Math.floor(((performance.now() - began) / 1_000) * FACTS_PER_SECOND) - facts;
    for (const account of idle.splice(0, Math.max(0, due >> 1))) {
      facts += 2;
      void append(account, pair(account)).then(() => idle.push(account));
    }
    await delay(TICK_MS);
  }
  const perSecond = facts / ((performance.now() - began) / 1_000);
  while (idle.length < ACCOUNTS) await delay(TICK_MS);
  return { facts: facts + 3 * ACCOUNTS, perSecond };
}

/** @returns milliseconds until all read models show everything */
async function shown(connectionString: string, end: bigint): Promise<number> {
  const pool = new pg.Pool({ connectionString, max: 1 });
  const names = projections.map(({ name }) => name);
  const began = performance.now();
  try {
    while (
      (await new ProjectionProgress(pool).loadAppliedPosition(names)) < end &&
      performance.now() - began < SHOWN_WITHIN_MS
    )
      await delay(TICK_MS);
    return performance.now() - began;
  } finally {
    await pool.end();
  }
}
