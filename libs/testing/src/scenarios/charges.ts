/** Helpers for charges in specs. */
import { isDeepStrictEqual } from 'node:util';
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

/** Creates a charge of one call. */
export function createCharge(overrides: Partial<ChargeItem> = {}, rest: Partial<Charge> = {}): Charge {
  const sold = { of: 'm', provider: 'p', creditor: 'p', usage: {}, estimated: false, cost: '0', price: '0' };
  return toCharge([{ ...sold, ...overrides }], { priceList: 'v', attempts: [], ...rest });
}

/** Returns the charges of events, whether settled or absorbed by the operator. */
export function listCharges(events: readonly DomainEvent[]): readonly Charge[] {
  return events.flatMap((event) =>
    event.type === 'HoldSettled' || event.type === 'ChargeAbsorbed' ? [event.data.charge] : [],
  );
}

/** Returns what providers would invoice for the charges, in USD with the format of a bill. */
export function formatTotalCost(charges: readonly Charge[]): string {
  return formatUsd(toPicoUsd(charges.reduce((sum, { cost }) => sum + BigInt(cost), 0n)));
}

/** Returns the items of the requested calls. */
export function listCallItems({ items }: Charge): readonly ChargeItem[] {
  return items.filter(({ beside }) => !beside);
}

/** Returns the items in addition to the requested calls, such as web searches. */
export function listExtraItems({ items }: Charge): readonly ChargeItem[] {
  return items.filter(({ beside }) => beside);
}

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

/** Returns the total usage of all calls. */
export function sumUsage(charge: Charge): Usage {
  return listCallItems(charge).reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE);
}

export function isEstimated({ items }: Charge): boolean {
  return items.some(({ estimated }) => estimated);
}

/**
 * Whether the amounts of each item follow from its usage and a line of the price list, and the totals of the charge
 * from its items.
 */
export function isExplained(charge: Charge, lines: readonly PriceListLine[]): boolean {
  const recalculated = charge.items.map((item) => {
    const line = lines.find(({ of, provider, creditor }) => {
      return of === item.of && provider === item.provider && creditor === item.creditor;
    });
    return line && toChargeItem({ ...line, prices: line.prices.map(parsePriceJson) }, item);
  });
  return (
    recalculated.every((item) => item) &&
    isDeepStrictEqual(charge, toCharge(recalculated as ChargeItem[], omitAmounts(charge)))
  );
}

function omitAmounts({ items, cost, price, ...rest }: Charge): Omit<Charge, 'items' | 'cost' | 'price'> {
  return rest;
}
