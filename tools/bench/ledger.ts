/** Measures how fast holds are placed and settled durably in the configured event store. */

import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Accounts, createStreams, PayerFactory, type PriceLists, toMasterKeyId } from '#application';
import { readCatalogue } from '#catalogue';
import { UNRESTRICTED_ACCESS } from '#domain';
import { PostgresSnapshots } from '#eventstore';
import type { Foundation } from '#foundation';
import { createRootCause, type PicoUsd, parseUsd } from '#kernel';
import { SystemClock } from '../../libs/testing/src/system-clock.ts';
import { charge, query } from '../sample-events.ts';

const WARMUP_MS = 1_000;
const MEASURE_MS = 5_000;

export interface LedgerMetric {
  readonly accounts: number;
  readonly concurrency: number;
  readonly pairsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * Holds and settles as fast as possible with `concurrency` concurrent requests, distributed over `accounts` accounts.
 */
export async function benchLedger(
  foundation: Foundation,
  accounts: number,
  concurrency: number,
): Promise<LedgerMetric> {
  const pool = new pg.Pool({ connectionString: foundation.databaseUrl, max: 4 });
  const streams = createStreams(foundation.store, new PostgresSnapshots(pool, [randomBytes(32)]), foundation.runtime);
  const clock = new SystemClock();
  const payers = new PayerFactory(streams, {
    clock,
    getProcessId: () => 'bench',
    events: foundation.store,
    runtime: foundation.runtime,
  });
  const [masterKey = ''] = foundation.settings.masterKeys ?? [];
  const sealedUnder = toMasterKeyId(Buffer.from(masterKey, 'hex'));
  await publishPriceLists(streams.priceLists, clock);
  const callers = await createFundedAccounts(streams.accounts, { clock, sealedUnder }, accounts);
  const latencies: number[] = [];
  let pairs = 0;
  let started = 0;
  const end = performance.now() + WARMUP_MS + MEASURE_MS;
  let next = 0;
  const worker = async () => {
    while (performance.now() < end) {
      const accountId = callers[next++ % callers.length] as string;
      const pairStartedAt = performance.now();
      const amount = parseUsd('0.001');
      const payer = payers.forCaller({ accountId, keyId: null });
      const hold = await payer.hold({
        holdId: randomUUID(),
        query,
        minAmount: amount,
        maxAmount: amount,
        priceList: charge.priceList,
        lifetimeMs: 600_000,
      });
      await payer.settle(hold, charge, { isDelivered: true });
      if (pairStartedAt < end - MEASURE_MS) continue;
      started ||= pairStartedAt;
      pairs++;
      latencies.push(performance.now() - pairStartedAt);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const seconds = (performance.now() - started) / 1000;
  latencies.sort((a, b) => a - b);
  const getPercentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  await pool.end();
  return {
    accounts,
    concurrency,
    pairsPerSecond: Math.round(pairs / seconds),
    p50Ms: getPercentile(0.5),
    p99Ms: getPercentile(0.99),
  };
}

/** Publishes the price list of the charges. A later `npm run ledger -- verify` of the event store requires it. */
async function publishPriceLists(priceLists: PriceLists, clock: SystemClock): Promise<void> {
  const { version, lines } = readCatalogue().priceList;
  const command = { type: 'PublishPriceList', data: { version, lines, at: clock.now() } } as const;
  await priceLists.run(version, command, createRootCause('bench', version));
}

interface Opening {
  readonly clock: SystemClock;
  /**
   * The id of the master key. Roles that start later on the event store check that they have the keys of all secrets.
   */
  readonly sealedUnder: string;
}

async function createFundedAccounts(
  accounts: Accounts,
  { clock, sealedUnder }: Opening,
  count: number,
): Promise<string[]> {
  const key = {
    name: 'Default',
    secret: { key: sealedUnder, box: '' },
    ...UNRESTRICTED_ACCESS,
    limit: null,
    resetPeriod: null,
    expireAt: null,
  };
  const ids = Array.from({ length: count }, () => randomUUID());
  await Promise.all(
    ids.map(async (id) => {
      const at = clock.now();
      const cause = createRootCause('bench', id);
      await accounts.run(id, { type: 'OpenAccount', data: { key: { ...key, keyId: id, hash: id }, at } }, cause);
      const credit = {
        creditId: id,
        method: 'btc-lightning',
        amount: parseUsd('1000000') as PicoUsd,
        bonus: parseUsd('0'),
        at,
      };
      await accounts.run(id, { type: 'AddCredit', data: credit }, cause);
    }),
  );
  return ids;
}
