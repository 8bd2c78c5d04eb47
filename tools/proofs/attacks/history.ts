import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';
import type { PagesRead, ReadersParams } from './history-readers.ts';

/** Records of the large account. Inserting them takes most of the time. */
const RECORDS = Number(process.env.HISTORY_RECORDS ?? 2_000_000);
const OTHER_RECORDS = 10_000;
const READERS = 30;
const LOAD_MS = 15_000;
const MAX_P99_MS = 50;
/** One record in 2,000 has the model some/model. Only one record of each account has the model rare/model. */
const RARE_MODEL_INTERVAL = 2_000;

/** The query strings of the readers: pages without filters, and the filters that are most expensive to evaluate. */
const READER_QUERIES = [
  '',
  'page=2',
  'page=7',
  'page=100',
  'all_keys=true&page_count=100',
  'all_keys=true&model=some/model',
  'all_keys=true&model=rare/model',
  'all_keys=true&query_type=video_generation&start_date=2025-02-01',
  'all_keys=true&start_date=2025-01-03&end_date=2025-01-04',
];
const FIRST_PAGES = ['', 'all_keys=true', 'all_keys=true&model=openai/gpt-5-mini', 'all_keys=true&query_source=api'];

/**
 * Thirty readers request one account's millions of records without a pause. Another account requests its balance and
 * its own 10,000 records.
 */
export const history: Attack = {
  name: 'history',
  description: `${READERS} readers request one account's ${RECORDS / 1_000_000} million records, also with filters, while another account requests its balance and its own records`,
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    const server = await startEmbeddedPostgres(directory);
    try {
      const [large, other] = [await cluster.createCustomer(1), await cluster.createCustomer(1)];
      await insertRecords(server.url, 0, RECORDS);
      await insertRecords(server.url, 1, OTHER_RECORDS);
      const unloaded = await measureUnderLoad(cluster, large, other, 0);
      const busy = await measureUnderLoad(cluster, large, other, READERS);
      const totals = await readTotals(cluster, large);
      const held = [busy.balances, unloaded.largest, busy.firstPages].every(({ p99 }) => p99 < MAX_P99_MS);
      const formatLatencies = (name: string, { p50, p99, count }: LatencySummary) =>
        `${name} p50 ${p50} ms, p99 ${p99} ms (${count})`;
      return {
        hasPassed: held && busy.failed === 0 && totals.every((total) => total === RECORDS),
        measurements: [
          formatLatencies('balance of another account', busy.balances),
          formatLatencies('balance of another account without readers', unloaded.balances),
          formatLatencies('first page of another account', busy.firstPages),
          formatLatencies('first page of another account without readers', unloaded.firstPages),
          formatLatencies('first page of the large account without readers', unloaded.largest),
          formatLatencies('pages of the readers', busy.pages),
          `totals of the large account ${[...new Set(totals)].join(', ')}`,
          `${busy.failed} failed`,
        ].join('; '),
      };
    } finally {
      await server.close();
      await cluster.stop();
    }
  },
};

/** Returns the totals on several pages of the account: of its key, of all keys, and in a range of years. */
async function readTotals({ gateways: [api = ''] }: ProofCluster, { apiKey }: Customer): Promise<readonly unknown[]> {
  const queries = ['', 'page=100', 'all_keys=true&page=50&page_count=100', 'start_date=2020-01-01&end_date=2030-12-31'];
  const read = queries.map(async (query) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${api}/queries/history?${query}`, { headers });
    const { pagination } = (await response.json()) as { pagination: { total: number; total_is_exact: boolean } };
    return pagination.total_is_exact ? pagination.total : 'not exact';
  });
  return Promise.all(read);
}

/** @param accountIndex the index of the account in the order of creation */
async function insertRecords(databaseUrl: string, accountIndex: number, records: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`set synchronous_commit = off`);
    await client.query(
      `insert into books.queries
       select 1000000000000 * (2 - $2::int) + n, timestamptz '2025-01-01' + n * interval '2 s', account_id, key_id,
              case when n = 1000 then 'rare/model' when n % ${RARE_MODEL_INTERVAL} = 0 then 'some/model' else 'openai/gpt-5-mini' end,
              100, 100, 20000000, 'chat_completion', 'api', false, false, false, null, n
         from (select account_id, key_id from books.keys order by created_at limit 1 offset $2::int) as its, generate_series(1, $1::int) as n`,
      [records, accountIndex],
    );
    await client.query('vacuum analyze books.queries');
  } finally {
    await client.end();
  }
}

interface LatencySummary {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

/**
 * Measures latencies while `readers` readers request pages of the large account without a pause. First pages of the
 * large account are measured only without readers.
 */
async function measureUnderLoad(cluster: ProofCluster, large: Customer, other: Customer, readers: number) {
  const [api = ''] = cluster.gateways;
  const readerOptions = { api, apiKey: large.apiKey, readers, queries: READER_QUERIES } satisfies ReadersParams;
  const worker = new Worker(path.join(import.meta.dirname, 'history-readers.js'), { workerData: readerOptions });
  let isOver = false;
  let failed = 0;
  const read = async ({ apiKey }: Customer, path: string, durationsMs: number[], method = 'GET') => {
    const started = performance.now();
    const response = await fetch(`${api}${path}`, { method, headers: { authorization: `Bearer ${apiKey}` } });
    await response.arrayBuffer();
    durationsMs.push(performance.now() - started);
    if (!response.ok) failed++;
  };
  const [balances, firstPages, largest]: [number[], number[], number[]] = [[], [], []];
  const runEvery = async (milliseconds: number, probe: (n: number) => Promise<void>) => {
    for (let n = 0; !isOver; n++) {
      await probe(n);
      await delay(milliseconds);
    }
  };
  const probing = [
    runEvery(20, () => read(other, '/credits/balance', balances, 'POST')),
    runEvery(50, (n) => read(other, `/queries/history?${FIRST_PAGES[n % FIRST_PAGES.length]}`, firstPages)),
  ];
  if (readers === 0)
    probing.push(runEvery(50, (n) => read(large, `/queries/history?${FIRST_PAGES[n % FIRST_PAGES.length]}`, largest)));
  await delay(LOAD_MS);
  isOver = true;
  await Promise.all(probing);
  const reply = once(worker, 'message');
  worker.postMessage('stop');
  const [pages] = (await reply) as [PagesRead];
  await worker.terminate();
  return {
    balances: summarizeLatencies(balances),
    firstPages: summarizeLatencies(firstPages),
    largest: summarizeLatencies(largest),
    pages: summarizeLatencies(pages.durationsMs),
    failed: failed + pages.failed,
  };
}

function summarizeLatencies(durationsMs: readonly number[]): LatencySummary {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
  return { p50: at(0.5), p99: at(0.99), count: durationsMs.length };
}
