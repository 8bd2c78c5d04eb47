/** Measures how fast millions of events are projected, replayed and verified, and their effect on requests. */

import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { createStreams, PayerFactory } from '#application';
import { PostgresSnapshots } from '#eventstore';
import { createLog, type Foundation, openFoundation, readSettings } from '#foundation';
import { findAccount } from '../../apps/ledger/src/find-account.ts';
import { SystemClock } from '../../libs/testing/src/system-clock.ts';
import { type Customer, ProofCluster } from '../cluster.ts';
import { charge, HOLD_AMOUNT, HOLD_MS, query, useManyAccounts } from '../sample-events.ts';
import { computeMedian, measureInParallel, measureSequentially, type Target } from './load.ts';

const HOT_EVENTS = 1_000_000;
const OTHER_ACCOUNTS = 1_000;
const POLL_INTERVAL_MS = 250;
const WARMUP_SECONDS = 4;
const SECONDS = 3;
const ROUNDS = 3;

export interface VolumeMetrics {
  readonly events: number;
  readonly projectedPerSecond: number;
  readonly replayedPerSecond: number;
  readonly verifiedPerSecond: number;
  /** The first request of the account with a million events at a gateway that has just started. */
  readonly firstRequestMs: number;
  readonly secondRequestMs: number;
  /** Latencies with a full store and with an empty one. */
  readonly latency: readonly {
    readonly concurrency: number;
    readonly fullP50Ms: number;
    readonly emptyP50Ms: number;
  }[];
}

export interface VolumeBench {
  readonly events: number;
  readonly dataDirs: readonly [full: string, empty: string];
  print(line: string): void;
}

export async function benchVolume({ events, dataDirs, print }: VolumeBench): Promise<VolumeMetrics> {
  const [fullDir, emptyDir] = dataDirs;
  const full = await ProofCluster.start(fullDir, 1);
  const empty = await ProofCluster.start(emptyDir, 1);
  try {
    const customers = [await full.createCustomer(1_000), await empty.createCustomer(1_000)] as const;
    await full.stopRole('projector');
    const foundation = await openFoundation(readSettings({ DATA_DIR: fullDir }), createLog('warn'));
    try {
      await appendToOneAccount(foundation, (await findAccount(foundation, customers[0].creditId)).id, HOT_EVENTS);
      print(`appended ${HOT_EVENTS} events of one account`);
      await useManyAccounts(foundation.store, OTHER_ACCOUNTS, events - HOT_EVENTS);
      print(`appended ${events} events`);
      const pendingEvents = await countUnprojectedEvents(foundation.databaseUrl);
      const projectionStartedAt = performance.now();
      await full.startRole('projector');
      await waitUntilProjected(foundation.databaseUrl);
      const projectedPerSecond = pendingEvents / ((performance.now() - projectionStartedAt) / 1000);
      print('projected all events');
      await full.stopRole('gateway 1');
      await full.startRole('gateway', 'gateway 1');
      const firstRequestMs = await measureRequest(full, customers[0]);
      const secondRequestMs = await measureRequest(full, customers[0]);
      const latency = await compareLatencies([full, empty], customers);
      print('compared latencies');
      const replayedPerSecond = events / (await measureLedgerSeconds(full, 'replay'));
      const verifiedPerSecond = events / (await measureLedgerSeconds(full, 'verify'));
      return {
        events,
        projectedPerSecond,
        replayedPerSecond,
        verifiedPerSecond,
        firstRequestMs,
        secondRequestMs,
        latency,
      };
    } finally {
      await foundation.close();
    }
  } finally {
    await empty.stop();
    await full.stop();
  }
}

/**
 * Uses the write path of requests, which also saves snapshots. They are signed with a random key, so the gateway does
 * not use them.
 */
async function appendToOneAccount(foundation: Foundation, accountId: string, events: number): Promise<void> {
  const pool = new pg.Pool({ connectionString: foundation.databaseUrl, max: 2 });
  const clock = new SystemClock();
  const streams = createStreams(foundation.store, new PostgresSnapshots(pool, [randomBytes(32)]), foundation.runtime);
  const payer = new PayerFactory(streams, {
    clock,
    getProcessId: () => 'bench',
    events: foundation.store,
    runtime: foundation.runtime,
  }).forCaller({ accountId, keyId: null });
  let pairs = events / 2;
  const worker = async () => {
    while (pairs-- > 0) {
      const request = {
        holdId: randomUUID(),
        query,
        minAmount: HOLD_AMOUNT,
        maxAmount: HOLD_AMOUNT,
        priceList: 'p',
        lifetimeMs: HOLD_MS,
      };
      await payer.settle(await payer.hold(request), charge, { isDelivered: true });
    }
  };
  await Promise.all(Array.from({ length: 256 }, worker));
  await delay(POLL_INTERVAL_MS); // a snapshot may not be saved yet
  await pool.end();
}

async function countUnprojectedEvents(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ n: string }>(
    'select count(*) as n from es.events where position > (select min(position) from books.checkpoints)',
  );
  await client.end();
  return Number(rows[0]?.n);
}

async function waitUntilProjected(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  for (;;) {
    const { rows } = await client.query<{ done: boolean }>(
      `select (select min(position) from books.checkpoints) >= (select max(position) from es.events) as done`,
    );
    if (rows[0]?.done) break;
    await delay(POLL_INTERVAL_MS);
  }
  await client.end();
}

async function measureLedgerSeconds(cluster: ProofCluster, command: string): Promise<number> {
  const startedAt = performance.now();
  const { code, output } = await cluster.runLedger(command);
  if (code !== 0) throw new Error(`ledger ${command} ended with ${code}: ${output.slice(0, 2_000)}`);
  return (performance.now() - startedAt) / 1000;
}

function createTarget(cluster: ProofCluster, { apiKey }: Customer): Target {
  const messages = [{ role: 'user', content: '[[sandbox tokens=16]]' }];
  return {
    url: `${cluster.gateways[0]}/v1/chat/completions`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'openai/gpt-5-mini', messages, max_completion_tokens: 64 }),
  };
}

async function measureRequest(cluster: ProofCluster, customer: Customer): Promise<number> {
  const { url, headers, body } = createTarget(cluster, customer);
  const sentAt = performance.now();
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.text();
  if (response.status !== 200) throw new Error(`a request got the status ${response.status}`);
  return performance.now() - sentAt;
}

/** Measures the full and the empty store in turns, so that other load on the host affects both. */
async function compareLatencies(
  clusters: readonly [ProofCluster, ProofCluster],
  customers: readonly [Customer, Customer],
) {
  const targets = [createTarget(clusters[0], customers[0]), createTarget(clusters[1], customers[1])] as const;
  for (const target of targets) await measureInParallel(target, 16, WARMUP_SECONDS);
  const latency = [];
  for (const concurrency of [1, 16]) {
    const p50: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      for (const i of [0, 1] as const) {
        const load =
          concurrency === 1
            ? measureSequentially(targets[i], SECONDS)
            : measureInParallel(targets[i], concurrency, SECONDS);
        p50[i].push((await load).p50Ms);
      }
    }
    latency.push({ concurrency, fullP50Ms: computeMedian(p50[0]), emptyP50Ms: computeMedian(p50[1]) });
  }
  return latency;
}
