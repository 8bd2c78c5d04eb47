import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { DomainEvent } from '#domain';
import { EventStoreDbEventStore, PostgresEventStore } from '#eventstore';
import { startEmbeddedPostgres } from '#foundation';
import { type EventStore, NO_STREAM } from '#kernel';
import { ProjectionProgress, projections } from '#projections';
import { FakeEventStoreDb } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { ProofCluster } from '../../cluster.ts';
import { readProcessUsage } from '../../processes.ts';
import { createHoldPair, createOpeningEvents, type SampleAccount } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

const EVENTS_PER_SECOND = 3_000;
const LOAD_MS = 20_000;
const ACCOUNTS = 600;
const TICK_MS = 10;
const PROJECTED_WITHIN_MS = 120_000;
/** The roles that follow the log, each in its own process. */
const FOLLOWERS = ['projector', 'sagas'] as const;

/** Maximum CPU time per event of the followers, relative to their CPU time per event with PostgreSQL. */
const MAX_POSTGRES_RATIO = 1.5;

/** Events are appended faster than a live subscription of EventStoreDB can deliver them. */
export const busyLog: Attack = {
  name: 'busy-log',
  description: `${EVENTS_PER_SECOND} events per second for ${LOAD_MS / 1_000} s in EventStoreDB, then in PostgreSQL, with all read models and sagas`,
  async run(directory): Promise<Finding> {
    const double = await FakeEventStoreDb.start();
    const openFakeStore = () => {
      const { connectionString } = double;
      return new EventStoreDbEventStore({ connectionString, streamPrefixes: ['account-'] });
    };
    try {
      const directories = [path.join(directory, 'eventstoredb'), path.join(directory, 'postgres')] as const;
      const eventStoreDb = await measureFollowers(
        directories[0],
        { EVENTSTORE_URL: double.connectionString },
        openFakeStore,
      );
      const { dropped, subscribe, pages, entries } = double.stats;
      const peer = await measureFollowers(
        directories[1],
        {},
        (connectionString) => new PostgresEventStore({ connectionString }),
      );
      const ratio = eventStoreDb.cpuPerEvent / peer.cpuPerEvent;
      const countPerProcess = (read: number) => read / FOLLOWERS.length / eventStoreDb.eventCount;
      return {
        hasPassed:
          dropped === 0 &&
          eventStoreDb.failed === 0 &&
          eventStoreDb.shownMs < PROJECTED_WITHIN_MS &&
          ratio <= MAX_POSTGRES_RATIO,
        measurements: [
          `${eventStoreDb.eventCount} events at ${Math.round(eventStoreDb.perSecond)}/s (PostgreSQL: ${Math.round(peer.perSecond)}/s)`,
          `${subscribe} subscriptions, ${dropped} dropped, ${eventStoreDb.failed} batches failed`,
          `each process read each event ${countPerProcess(entries - pages).toFixed(2)} times, in pages of ${Math.round(1 / countPerProcess(pages))}`,
          `all projected ${(eventStoreDb.shownMs / 1_000).toFixed(1)} s after the last event`,
          `${(eventStoreDb.cpuPerEvent * 1e6).toFixed(0)} µs of CPU per event in ${FOLLOWERS.join(' and ')}, ${ratio.toFixed(2)} × PostgreSQL`,
        ].join('; '),
      };
    } finally {
      double.stop();
    }
  },
};

interface FollowerMetrics {
  readonly eventCount: number;
  readonly perSecond: number;
  /** The number of output chunks that report a batch that a projection or workflow could not apply. */
  readonly failed: number;
  /** The time from the last append until all read models included it; about PROJECTED_WITHIN_MS if they did not. */
  readonly shownMs: number;
  /** In seconds, the sum of all followers. */
  readonly cpuPerEvent: number;
}

/** Starts the followers of the log and measures them under load. */
async function measureFollowers(
  directory: string,
  settings: Readonly<Record<string, string>>,
  open: (databaseUrl: string) => EventStore & { close(): Promise<void> },
): Promise<FollowerMetrics> {
  const cluster = await ProofCluster.start(directory, 0, settings);
  const database = await startEmbeddedPostgres(directory);
  const store = open(database.url);
  try {
    const cpuBefore = readCpuSeconds(cluster);
    const { eventCount, perSecond } = await appendEvents(store);
    const shownMs = await measureProjectionDelay(database.url, await store.readLastPosition());
    const cpuPerEvent = (readCpuSeconds(cluster) - cpuBefore) / eventCount;
    const outputChunks = FOLLOWERS.flatMap((name) => cluster.processes.get(name)?.outputChunks ?? []);
    const failed = outputChunks.filter((line) => line.includes('could not apply')).length;
    return { eventCount, perSecond, failed, shownMs, cpuPerEvent };
  } finally {
    await store.close();
    await database.close();
    await cluster.stop();
  }
}

function readCpuSeconds({ processes }: ProofCluster): number {
  return readProcessUsage(FOLLOWERS.map((name) => processes.get(name)?.pid as number)).cpuSeconds;
}

interface Account extends SampleAccount {
  revision: number;
}

/** Appends at most at the intended rate. As a request does, appends two events at a time to one account. */
async function appendEvents(store: EventStore): Promise<{ readonly eventCount: number; readonly perSecond: number }> {
  const accounts: Account[] = Array.from({ length: ACCOUNTS }, () => ({
    id: randomUUID(),
    keyId: randomUUID(),
    revision: NO_STREAM,
  }));
  const append = async (account: Account, domainEvents: readonly DomainEvent[]) => {
    const events = domainEvents.map((event) => ({ ...event, id: randomUUID(), metadata: {} }));
    const head = await store.append(`account-${account.id}`, account.revision, events);
    if (head === 'stale') throw new Error('another process writes to this store');
    account.revision = head.revision;
  };
  await Promise.all(accounts.map((account) => append(account, createOpeningEvents(account))));
  const idle = [...accounts];
  const startedAt = performance.now();
  let eventCount = 0;
  while (performance.now() - startedAt < LOAD_MS) {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * EVENTS_PER_SECOND) - eventCount;
    for (const account of idle.splice(0, Math.max(0, due >> 1))) {
      eventCount += 2;
      void append(account, createHoldPair(account)).then(() => idle.push(account));
    }
    await delay(TICK_MS);
  }
  const perSecond = eventCount / ((performance.now() - startedAt) / 1_000);
  while (idle.length < ACCOUNTS) await delay(TICK_MS);
  return { eventCount: eventCount + 3 * ACCOUNTS, perSecond };
}

/** @returns milliseconds until all read models include every event up to `end`; about PROJECTED_WITHIN_MS if late */
async function measureProjectionDelay(connectionString: string, end: bigint): Promise<number> {
  const pool = new pg.Pool({ connectionString, max: 1 });
  const names = projections.map(({ name }) => name);
  const startedAt = performance.now();
  try {
    while (
      (await new ProjectionProgress(pool).loadAppliedPosition(names)) < end &&
      performance.now() - startedAt < PROJECTED_WITHIN_MS
    )
      await delay(TICK_MS);
    return performance.now() - startedAt;
  } finally {
    await pool.end();
  }
}
