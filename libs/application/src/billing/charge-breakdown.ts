import { type ChargeItem, calculateCost, type Tariff, type Usage } from '#domain';
import { money, type PicoUsd, ZERO_USD } from '#kernel';

/** What a charge is made of: the parts add up to it. */
export interface ChargeBreakdown {
  /** What the vendor of the model takes for its input, and for the rest. */
  readonly input: PicoUsd;
  readonly output: PicoUsd;
  /** The fees for searches of the web. */
  readonly searches: PicoUsd;
  readonly margin: PicoUsd;
}

/**
 * Of what is charged the fees come first, then what the vendor takes; what is left is ours.
 * @param inputCost what the vendors take for the input of all calls
 */
export function breakDownCharge(charged: PicoUsd, items: readonly ChargeItem[], inputCost: PicoUsd): ChargeBreakdown {
  let remaining = charged;
  const deduct = (part: PicoUsd) => {
    const amount = money.min(part, remaining);
    remaining = money.subtract(remaining, amount);
    return amount;
  };
  const sum = (amount: 'cost' | 'price', isExtra: boolean) =>
    money.sum(
      items.filter((item) => (item.beside ?? false) === isExtra).map((item) => money.parseJsonAmount(item[amount])),
    );
  const searches = deduct(sum('price', true));
  const cost = sum('cost', false);
  const input = deduct(money.min(inputCost, cost));
  const output = deduct(money.subtract(cost, money.min(inputCost, cost)));
  return { input, output, searches, margin: remaining };
}

/** What a vendor takes for all of a use but its output; nothing where it has no price. */
export function calculateInputCost({ prices }: Tariff, { output, reasoning, ...input }: Usage): PicoUsd {
  try {
    return calculateCost(input, prices);
  } catch {
    return ZERO_USD;
  }
}
