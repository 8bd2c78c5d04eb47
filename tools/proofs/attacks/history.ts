import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';
import type { PagesRead, Readers } from './history-readers.ts';

/** Records of one account, beside a tenth of that of another: 2,000,000 unless the environment says otherwise; making them takes the most time. */
const RECORDS = Number(process.env.HISTORY_RECORDS ?? 2_000_000);
const READERS = 30;
const LASTS_MS = 15_000;
const MOST_MS = 50;
/** One in so many records has this model, and one in all the other one. */
const SELDOM = 2_000;

/** What readers ask for: whole histories, page by page, and whatever takes the longest look. */
const ASKED = [
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

/** Thirty readers of one account's millions of records, without a pause, beside another who asks for his own and his balance. */
export const history: Attack = {
  name: 'history',
  what: `${READERS} readers of one account's ${RECORDS / 1_000_000} million records, with all filters, beside the balances of others`,
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    const server = await startEmbeddedPostgres(directory);
    try {
      const [large, other] = [await cluster.customer(1), await cluster.customer(1)];
      await fill(server.url, 0, RECORDS);
      await fill(server.url, 1, RECORDS / 10);
      const quiet = await underLoad(cluster, large, other, 0);
      const busy = await underLoad(cluster, large, other, READERS);
      const held = [busy.balances, quiet.largest, busy.firstPages].every(({ p99 }) => p99 < MOST_MS);
      const said = (name: string, { p50, p99, count }: Figures) => `${name} p50 ${p50} ms, p99 ${p99} ms (${count})`;
      return {
        held: held && busy.failed === 0,
        measured: [
          said('balance of others', busy.balances),
          said('alone', quiet.balances),
          said('first page of others', busy.firstPages),
          said('alone', quiet.firstPages),
          said('first page of it all', quiet.largest),
          said('pages of the readers', busy.pages),
          `${busy.failed} failed`,
        ].join('; '),
      };
    } finally {
      await server.close();
      await cluster.stop();
    }
  },
};

/** @param nr of the account, by when it was opened */
async function fill(databaseUrl: string, nr: number, records: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`set synchronous_commit = off`);
    await client.query(
      `insert into books.queries
       select 1000000000000 * (2 - $2::int) + n, timestamptz '2025-01-01' + n * interval '2 s', account_id, key_id,
              case when n = 1000 then 'rare/model' when n % ${SELDOM} = 0 then 'some/model' else 'openai/gpt-5-mini' end,
              100, 100, 20000000, 'chat_completion', 'api', false, false, false, null, n
         from (select account_id, key_id from books.keys order by created_at limit 1 offset $2::int) as its, generate_series(1, $1::int) as n`,
      [records, nr],
    );
    await client.query('vacuum analyze books.queries');
  } finally {
    await client.end();
  }
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

/** How long answers took while so many read without a pause. */
async function underLoad(cluster: ProofCluster, large: Customer, other: Customer, readers: number) {
  const [api = ''] = cluster.gateways;
  const readingOf = { api, apiKey: large.apiKey, readers, asked: ASKED } satisfies Readers;
  const worker = new Worker(path.join(import.meta.dirname, 'history-readers.js'), { workerData: readingOf });
  let isOver = false;
  let failed = 0;
  const read = async ({ apiKey }: Customer, path: string, took: number[], method = 'GET') => {
    const started = performance.now();
    const response = await fetch(`${api}${path}`, { method, headers: { authorization: `Bearer ${apiKey}` } });
    await response.arrayBuffer();
    took.push(performance.now() - started);
    if (!response.ok) failed++;
  };
  const [balances, firstPages, largest]: [number[], number[], number[]] = [[], [], []];
  const every = async (milliseconds: number, ask: (n: number) => Promise<void>) => {
    for (let n = 0; !isOver; n++) {
      await ask(n);
      await delay(milliseconds);
    }
  };
  const probing = [
    every(20, () => read(other, '/credits/balance', balances, 'POST')),
    every(50, (n) => read(other, `/queries/history?${FIRST_PAGES[n % FIRST_PAGES.length]}`, firstPages)),
  ];
  if (readers === 0)
    probing.push(every(50, (n) => read(large, `/queries/history?${FIRST_PAGES[n % FIRST_PAGES.length]}`, largest)));
  await delay(LASTS_MS);
  isOver = true;
  await Promise.all(probing);
  const answered = once(worker, 'message');
  worker.postMessage('stop');
  const [pages] = (await answered) as [PagesRead];
  await worker.terminate();
  return {
    ...{ balances: figures(balances), firstPages: figures(firstPages), largest: figures(largest) },
    ...{ pages: figures(pages.took), failed: failed + pages.failed },
  };
}

function figures(took: readonly number[]): Figures {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
  return { p50: at(0.5), p99: at(0.99), count: took.length };
}
