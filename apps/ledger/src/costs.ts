/** Compares the costs that providers reported with their responses with those in the ledger. */
import { type ChargeItem, type DomainEvent, hasDifferentCost } from '#domain';
import { type EventReader, formatUsd, money, type PicoUsd, START_POSITION, type StoredEvent, ZERO_USD } from '#kernel';
import { type EventPeriod, parseSinceFilter, parseUntilFilter } from './event-filter.ts';
import { defineTable } from './table.ts';

/** All calls of one model that one provider invoices and whose cost it reported. */
interface CostComparison {
  readonly model: string;
  readonly creditor: string;
  calls: number;
  /** Calls whose costs differ by more than 1 %. */
  different: number;
  booked: PicoUsd;
  reported: PicoUsd;
  /** Sum of what these calls cost more than the ledger contains. */
  excess: PicoUsd;
}

const TABLE = defineTable(
  ['model', 32],
  ['provider', 12],
  ['calls', -8],
  ['different', -9],
  ['ledger USD', -16],
  ['reported USD', -16],
  ['excess USD', -16],
);

/**
 * Lists the calls whose provider reported a cost, by model and provider, in alphabetical order: how many of them differ
 * by more than 1 % from the ledger, both sums, and what was reported beyond the ledger. Memory grows with the number of
 * models.
 * @throws StartError if a bound of the period is invalid
 */
export async function printCosts(
  store: EventReader,
  { since, until }: EventPeriod,
  print: (line: string) => void,
): Promise<void> {
  const [isSince, isUntil] = [parseSinceFilter(since), parseUntilFilter(until)];
  const comparisons = new Map<string, CostComparison>();
  for await (const { events } of store.readAll(START_POSITION))
    for (const event of events)
      if (isSince(event) && isUntil(event))
        for (const item of listItems(event as StoredEvent<DomainEvent>)) addItem(comparisons, item);
  const sorted = [...comparisons].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, comparison]) => comparison);
  const count = (field: 'calls' | 'different') => sorted.reduce((sum, comparison) => sum + comparison[field], 0);
  const excess = money.sum(sorted.map((comparison) => comparison.excess));
  print(
    `${count('calls')} calls with a reported cost, ${count('different')} of them differ by more than 1 %: ` +
      `${formatUsd(excess)} USD beyond the ledger`,
  );
  if (sorted.length > 0) print(TABLE.heading);
  for (const row of sorted) print(formatRow(row));
}

/** Returns the items of all charges, absorbed ones included. */
function listItems(event: StoredEvent<DomainEvent>): readonly ChargeItem[] {
  return event.type === 'HoldSettled' || event.type === 'ChargeAbsorbed' ? event.data.charge.items : [];
}

function addItem(comparisons: Map<string, CostComparison>, item: ChargeItem): void {
  const { of, creditor, cost, reportedCost } = item;
  if (reportedCost === undefined) return;
  const model = of ?? 'unknown model';
  const key = `${model} ${creditor}`;
  const comparison = comparisons.get(key) ?? {
    model,
    creditor,
    calls: 0,
    different: 0,
    booked: ZERO_USD,
    reported: ZERO_USD,
    excess: ZERO_USD,
  };
  comparisons.set(key, comparison);
  comparison.calls += 1;
  if (hasDifferentCost(item)) comparison.different += 1;
  comparison.booked = money.add(comparison.booked, money.parseJsonAmount(cost));
  comparison.reported = money.add(comparison.reported, money.parseJsonAmount(reportedCost));
  comparison.excess = money.add(comparison.excess, calculateCostBeyondLedger(item));
}

/** Returns by how much the reported cost of a call exceeds its cost in the ledger; 0 if they agree within 1 %. */
export function calculateCostBeyondLedger(item: Pick<ChargeItem, 'cost' | 'reportedCost'>): PicoUsd {
  if (item.reportedCost === undefined || !hasDifferentCost(item)) return ZERO_USD;
  return money.max(money.subtract(money.parseJsonAmount(item.reportedCost), money.parseJsonAmount(item.cost)));
}

function formatRow({ model, creditor, calls, different, booked, reported, excess }: CostComparison): string {
  const amounts = [booked, reported, excess].map(formatUsd);
  return TABLE.formatRow(model, creditor, String(calls), String(different), ...amounts);
}
