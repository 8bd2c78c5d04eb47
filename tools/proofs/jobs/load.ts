/** Requests many videos, measures the CPU time of a process, and counts pending and overdue videos. */
import type pg from 'pg';
import { type Customer, type ProofCluster, post } from '../../cluster.ts';
import { readProcessUsage } from '../../processes.ts';

export const MODEL = 'kling/kling-2.5-turbo';
const PRICE = 0.4025;
/** Maximum amount of one top-up. */
const MAX_TOPUP_USD = 1_000;
const AT_ONCE = 32;
const POLL_INTERVAL_MS = 25;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function createFundedCustomer(cluster: ProofCluster, jobs: number): Promise<Customer> {
  const customer = await cluster.createCustomer(0);
  for (let remainingUsd = jobs * PRICE; remainingUsd > 0; remainingUsd -= MAX_TOPUP_USD)
    await cluster.fund(customer, Math.min(remainingUsd, MAX_TOPUP_USD));
  return customer;
}

/** Requests videos whose generation takes ten minutes. @returns their ids */
export async function requestVideos(
  cluster: ProofCluster,
  jobs: number,
  { apiKey }: Customer,
): Promise<readonly string[]> {
  const [api = ''] = cluster.gateways;
  const body = { model: MODEL, duration: 5, prompt: '[[sandbox latency=600000]]' };
  const ids: string[] = [];
  const requestNext = async (): Promise<void> => {
    while (ids.length < jobs) {
      const at = ids.push('') - 1;
      const { id, message } = await post(`${api}/v1/videos`, body, apiKey);
      if (id === undefined) throw new Error(`no video was created: ${message}`);
      ids[at] = String(id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, requestNext));
  return ids;
}

export async function countVideosInState(database: pg.Pool, state: string): Promise<number> {
  const { rows } = await database.query('select count(*)::int as n from books.video_jobs where state = $1', [state]);
  return rows[0].n as number;
}

export async function waitUntilAllInState(
  database: pg.Pool,
  state: string,
  jobs: number,
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let n = 0; n < jobs; n = await countVideosInState(database, state)) {
    if (performance.now() > deadline) throw new Error(`only ${n} of ${jobs} videos were ${state} in time`);
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Returns the share of one core that a process uses, as an average over `seconds`. */
export async function measureCpuShare(pid: number, seconds: number): Promise<number> {
  const before = readProcessUsage([pid]).cpuSeconds;
  await sleep(seconds * 1_000);
  return (readProcessUsage([pid]).cpuSeconds - before) / seconds;
}

/** Counts videos that were due at `since`, by the database's clock, and have not been processed since then. */
export async function countOverdueVideos(database: pg.Pool, since: string): Promise<number> {
  const { rows } = await database.query(
    `select count(*)::int as n from es.due where workflow = 'videos' and at <= $1::timestamptz`,
    [since],
  );
  return rows[0].n as number;
}
