/** Compares the costs of all charges, which are read from the events, with the providers' bill. */
import type { DomainEvent } from '#domain';
import type { EventReader, StoredEvent } from '#kernel';
import { formatUsd, money, parseUsd, START_POSITION } from '#kernel';

interface Line {
  readonly id: string;
  readonly model: string;
  readonly usd: string;
}

export interface BillComparison {
  readonly settled: number;
  readonly lines: number;
  readonly ledgerUsd: string;
  readonly billUsd: string;
  /** Ids of provider calls that are charged more than once. */
  readonly twice: readonly string[];
  /** Lines of the bill without a charge, as `id model`. */
  readonly missing: readonly string[];
  /** Charges whose cost differs from their line, as `id cost billed`. */
  readonly different: readonly string[];
}

export async function fetchBill(sandbox: string): Promise<readonly Line[]> {
  return (await (await fetch(`${sandbox}/bill/lines`)).json()) as readonly Line[];
}

/** Compares each line of the bill with the cost of the same call in the ledger. */
export async function compareWithBill(store: EventReader, sandbox: string): Promise<BillComparison> {
  const items: { readonly vendorId: string | undefined; readonly cost: bigint }[] = [];
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const { type, data } of events as readonly StoredEvent<DomainEvent>[]) {
      if (type !== 'HoldSettled' && type !== 'ChargeAbsorbed') continue;
      items.push(
        ...data.charge.items.map((item) => ({ vendorId: item.vendorId, cost: money.parseJsonAmount(item.cost) })),
      );
    }
  }
  const lines = await fetchBill(sandbox);
  const charged = Map.groupBy(items, ({ vendorId }) => vendorId);
  const total = (amounts: readonly bigint[]) =>
    formatUsd(money.toPicoUsd(amounts.reduce((sum, amount) => sum + amount, 0n)));
  return {
    settled: items.length,
    lines: lines.length,
    ledgerUsd: total(items.map(({ cost }) => cost)),
    billUsd: total(lines.map((line) => parseUsd(line.usd))),
    twice: [...charged].filter(([id, charges]) => id !== undefined && charges.length > 1).map(([id]) => String(id)),
    missing: lines.filter(({ id }) => !charged.has(id)).map(({ id, model }) => `${id} ${model}`),
    different: lines.flatMap(({ id, usd: amount }) => {
      const cost = charged.get(id)?.[0]?.cost;
      return cost === undefined || cost === parseUsd(amount)
        ? []
        : [`${id} ${formatUsd(money.toPicoUsd(cost))} ${amount}`];
    }),
  };
}
