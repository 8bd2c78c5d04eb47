/** Reads from the balance and the history of an account what its client was charged. */
import { money, type PicoUsd } from '#kernel';
import type { Customer, ProofCluster } from '../../cluster.ts';

const AGREES_WITHIN_MS = 15_000;
const POLL_INTERVAL_MS = 50;
const PAGE = 100;

export interface ChargeSummary {
  readonly balanceUsd: PicoUsd;
  readonly historyUsd: PicoUsd;
  readonly heldUsd: number;
  /** Number of requests without an error in the history. */
  readonly served: number;
  /** Number of requests with an error in the history, whether or not a part of the response was charged. */
  readonly failed: number;
}

/**
 * Returns by how much the balance is below `before`, and the sum of the complete history. The history lags a little, so
 * this waits until the two agree, nothing is held and the history has enough requests. After 15 s, returns the current
 * values in any case.
 * @param expected the minimum number of served requests, and of failed ones
 */
export async function waitForCharges(
  cluster: ProofCluster,
  customer: Customer,
  before: number,
  expected: Pick<ChargeSummary, 'served'> & Partial<Pick<ChargeSummary, 'failed'>>,
): Promise<ChargeSummary> {
  const { served, failed = 0 } = expected;
  const deadline = performance.now() + AGREES_WITHIN_MS;
  for (;;) {
    const now = await readCharges(cluster, customer, before);
    const isConsistent = now.balanceUsd === now.historyUsd && now.heldUsd === 0;
    const isComplete = now.served >= served && now.failed >= failed;
    if ((isConsistent && isComplete) || performance.now() > deadline) return now;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

async function readCharges(cluster: ProofCluster, customer: Customer, before: number): Promise<ChargeSummary> {
  const { balance, held_usd: heldUsd } = await cluster.fetchBalance(customer);
  const records = await fetchHistory(cluster, customer);
  const prices = records.map(({ price_in_usd }) => money.parseUsd(price_in_usd));
  const served = records.filter(({ error_code }) => error_code === null).length;
  return {
    balanceUsd: money.toPicoUsd(money.parseUsd(before) - money.parseUsd(balance)),
    historyUsd: prices.reduce(money.add, money.ZERO_USD),
    heldUsd,
    served,
    failed: records.length - served,
  };
}

/**
 * Returns by request id how many records without an error the history has. A charge that was reversed does not count.
 */
export async function countCharges(cluster: ProofCluster, customer: Customer): Promise<ReadonlyMap<string, number>> {
  const records = await fetchHistory(cluster, customer);
  const reversed = records.filter(({ error_code }) => error_code === 'charge_reversed');
  const reversedIds = new Set(reversed.map(({ request_id }) => request_id));
  const served = records.filter(({ error_code, request_id }) => error_code === null && !reversedIds.has(request_id));
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
