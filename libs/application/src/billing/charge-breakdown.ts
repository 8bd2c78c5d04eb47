import { type ChargeItem, calculateCost, type Tariff, UnpricedUnitError, type Usage } from '#domain';
import { money, type PicoUsd, ZERO_USD } from '#kernel';

/** The parts of a charge, which add up to it. */
export interface ChargeBreakdown {
  /** Covers what the model's providers invoice for input. */
  readonly input: PicoUsd;
  /** Covers everything else that they invoice. */
  readonly output: PicoUsd;
  /** Fees for web searches. */
  readonly searches: PicoUsd;
  readonly margin: PicoUsd;
}

/**
 * Splits a charge into its parts. The fees for web searches are deducted first, then the provider's costs for input and
 * output; the rest is the margin. A charge that does not cover all costs leaves less for the later parts, down to zero. Items
 * that the operator absorbs are no part of it.
 * @param inputCost what the providers invoice for the input of all calls
 */
export function breakDownCharge(charged: PicoUsd, items: readonly ChargeItem[], inputCost: PicoUsd): ChargeBreakdown {
  const paid = items.filter(({ absorbed }) => absorbed === undefined);
  let remaining = charged;
  const deduct = (part: PicoUsd) => {
    const amount = money.min(part, remaining);
    remaining = money.subtract(remaining, amount);
    return amount;
  };
  const sum = (amount: 'cost' | 'price', isExtra: boolean) =>
    money.sum(
      paid.filter((item) => (item.beside ?? false) === isExtra).map((item) => money.parseJsonAmount(item[amount])),
    );
  const searches = deduct(sum('price', true));
  const cost = sum('cost', false);
  const input = deduct(money.min(inputCost, cost));
  const output = deduct(money.subtract(cost, money.min(inputCost, cost)));
  return { input, output, searches, margin: remaining };
}

/**
 * Returns what the provider invoices for all units of a usage except output and reasoning.
 * @returns 0 if one of the units has no price
 */
export function calculateInputCost({ prices }: Tariff, { output, reasoning, ...input }: Usage): PicoUsd {
  try {
    return calculateCost(input, prices);
  } catch (error) {
    if (error instanceof UnpricedUnitError) return ZERO_USD;
    throw error;
  }
}
