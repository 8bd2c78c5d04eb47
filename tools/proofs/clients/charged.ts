/** Reads what a client was charged from the balance and from the history of its account. */
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
 * Returns what was charged since the balance was `before`, as soon as balance and history agree. The history lags a
 * little. If they still disagree after 15 s, the current values are returned.
 * @param served the number of served requests that the history must have
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

/** Returns by request id how often each request was charged. */
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
