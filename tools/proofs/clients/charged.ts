/** What a client has cost its account, as the balance and the history say it. */
import { money, type PicoUsd } from '#kernel';
import type { Customer, ProofCluster } from '../../cluster.ts';

const AGREES_WITHIN_MS = 15_000;
const POLL_INTERVAL_MS = 50;
const PAGE = 100;

export interface ChargeSummary {
  readonly balanceUsd: PicoUsd;
  readonly historyUsd: PicoUsd;
  readonly heldUsd: number;
  /** Requests in the history that were charged as served. */
  readonly served: number;
}

/**
 * What was charged since the balance was `before`, once balance and history agree; the history comes a little later.
 * @param served how many requests were answered
 */
export async function waitForCharges(
  cluster: ProofCluster,
  customer: Customer,
  before: number,
  served: number,
): Promise<ChargeSummary> {
  const deadline = performance.now() + AGREES_WITHIN_MS;
  for (;;) {
    const now = await readCharges(cluster, customer, before);
    const isConsistent = now.balanceUsd === now.historyUsd && now.heldUsd === 0 && now.served >= served;
    if (isConsistent || performance.now() > deadline) return now;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

async function readCharges(cluster: ProofCluster, customer: Customer, before: number): Promise<ChargeSummary> {
  const { balance, held_usd: heldUsd } = await cluster.fetchBalance(customer);
  const records = await fetchHistory(cluster, customer);
  const prices = records.map(({ price_in_usd }) => money.parseUsd(price_in_usd));
  return {
    balanceUsd: money.toPicoUsd(money.parseUsd(before) - money.parseUsd(balance)),
    historyUsd: prices.reduce(money.add, money.ZERO_USD),
    heldUsd,
    served: records.filter(({ error_code }) => error_code === null).length,
  };
}

/** How often each request was charged as served, by its id. */
export async function countCharges(cluster: ProofCluster, customer: Customer): Promise<ReadonlyMap<string, number>> {
  const served = (await fetchHistory(cluster, customer)).filter(({ error_code }) => error_code === null);
  return new Map([...Map.groupBy(served, (record) => record.request_id)].map(([id, { length }]) => [id, length]));
}

interface HistoryRecord {
  readonly request_id: string;
  readonly price_in_usd: number;
  readonly error_code: string | null;
}

async function fetchHistory(
  { gateways: [api] }: ProofCluster,
  { apiKey }: Customer,
): Promise<readonly HistoryRecord[]> {
  const records: HistoryRecord[] = [];
  for (let page = 1; ; page++) {
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${api}/queries/history?page=${page}&page_count=${PAGE}`, { headers });
    const { data } = (await response.json()) as { data: readonly HistoryRecord[] };
    records.push(...data);
    if (data.length < PAGE) return records;
  }
}
