/** What a client has cost its account, as the balance and the history say it. */
import { money, type PicoUsd } from '#kernel';
import type { Customer, ProofCluster } from '../../cluster.ts';

const AGREES_WITHIN_MS = 15_000;
const LOOK_AGAIN_MS = 50;
const PAGE = 100;

export interface Charged {
  readonly fromBalance: PicoUsd;
  readonly inHistory: PicoUsd;
  readonly heldUsd: number;
  /** Requests in the history that were charged as served. */
  readonly served: number;
}

/**
 * What was charged since the balance was `before`, once balance and history agree; the history comes a little later.
 * @param served how many requests were answered
 */
export async function charged(
  cluster: ProofCluster,
  customer: Customer,
  before: number,
  served: number,
): Promise<Charged> {
  const deadline = performance.now() + AGREES_WITHIN_MS;
  for (;;) {
    const now = await look(cluster, customer, before);
    const agrees = now.fromBalance === now.inHistory && now.heldUsd === 0 && now.served >= served;
    if (agrees || performance.now() > deadline) return now;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

async function look(cluster: ProofCluster, customer: Customer, before: number): Promise<Charged> {
  const { balance, held_usd: heldUsd } = await cluster.balance(customer);
  const records = await historyOf(cluster, customer);
  const prices = records.map(({ price_in_usd }) => money.parseUsd(price_in_usd));
  return {
    fromBalance: money.toPicoUsd(money.parseUsd(before) - money.parseUsd(balance)),
    inHistory: prices.reduce(money.add, money.ZERO_USD),
    heldUsd,
    served: records.filter(({ error_code }) => error_code === null).length,
  };
}

/** How often each request was charged as served, by its id. */
export async function chargesOf(cluster: ProofCluster, customer: Customer): Promise<ReadonlyMap<string, number>> {
  const served = (await historyOf(cluster, customer)).filter(({ error_code }) => error_code === null);
  return new Map([...Map.groupBy(served, (each) => each.request_id)].map(([id, { length }]) => [id, length]));
}

interface Recorded {
  readonly request_id: string;
  readonly price_in_usd: number;
  readonly error_code: string | null;
}

async function historyOf({ gateways: [api] }: ProofCluster, { apiKey }: Customer): Promise<readonly Recorded[]> {
  const records: Recorded[] = [];
  for (let page = 1; ; page++) {
    const headers = { authorization: `Bearer ${apiKey}` };
    const answer = await fetch(`${api}/queries/history?page=${page}&page_count=${PAGE}`, { headers });
    const { data } = (await answer.json()) as { data: readonly Recorded[] };
    records.push(...data);
    if (data.length < PAGE) return records;
  }
}
