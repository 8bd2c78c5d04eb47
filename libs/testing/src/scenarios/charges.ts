/** What specs ask of charges. */
import {
  addUsage,
  type Charge,
  type ChargeItem,
  type DomainEvent,
  NO_USAGE,
  type PriceListLine,
  parsePriceJson,
  toCharge,
  toChargeItem,
  type Usage,
} from '#domain';
import { formatUsd, toPicoUsd } from '#kernel';

/** A charge of one call, with whatever differs. */
export function createCharge(overrides: Partial<ChargeItem> = {}, rest: Partial<Charge> = {}): Charge {
  const sold = { of: 'm', provider: 'p', creditor: 'p', usage: {}, estimated: false, cost: '0', price: '0' };
  return toCharge([{ ...sold, ...overrides }], { priceList: 'v', attempts: [], ...rest });
}

/** The charges of facts, settled or borne by the house. */
export function listCharges(events: readonly DomainEvent[]): readonly Charge[] {
  return events.flatMap((event) =>
    event.type === 'HoldSettled' || event.type === 'ChargeAbsorbed' ? [event.data.charge] : [],
  );
}

/** What providers would invoice for charges, in USD as a bill has it. */
export function formatTotalCost(charges: readonly Charge[]): string {
  return formatUsd(toPicoUsd(charges.reduce((sum, { cost }) => sum + BigInt(cost), 0n)));
}

/** The calls of what was asked. */
export function listCallItems({ items }: Charge): readonly ChargeItem[] {
  return items.filter(({ beside }) => !beside);
}

/** What was used beside it. */
export function listExtraItems({ items }: Charge): readonly ChargeItem[] {
  return items.filter(({ beside }) => beside);
}

/** Tokens by their classes. */
export type TokenCounts = readonly [
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
  reasoning: number,
];

export function toTokenUsage([input, cacheRead, cacheWrite, output, reasoning]: TokenCounts): Usage {
  return { input, cacheRead, cacheWrite, output, reasoning };
}

/** What all calls have used together. */
export function sumUsage(charge: Charge): Usage {
  return listCallItems(charge).reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE);
}

export function isEstimated({ items }: Charge): boolean {
  return items.some(({ estimated }) => estimated);
}

/** True when the amounts of each item follow from its usage and a line of the price list, and those of the charge from them. */
export function isExplained(charge: Charge, lines: readonly PriceListLine[]): boolean {
  const recalculated = charge.items.map((item) => {
    const line = lines.find(({ of, provider, creditor }) => {
      return of === item.of && provider === item.provider && creditor === item.creditor;
    });
    return line && toChargeItem({ ...line, prices: line.prices.map(parsePriceJson) }, item);
  });
  return (
    recalculated.every((item) => item) &&
    JSON.stringify(charge) === JSON.stringify(toCharge(recalculated as ChargeItem[], omitAmounts(charge)))
  );
}

function omitAmounts({ items, cost, price, ...rest }: Charge): Omit<Charge, 'items' | 'cost' | 'price'> {
  return rest;
}
