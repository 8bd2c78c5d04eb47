import {
  type CallUsage,
  type ChargeItem,
  NO_USAGE,
  type Tariff,
  toChargeItem,
  toUsageJson,
  UnpricedUnitError,
} from '#domain';
import { money, type PicoUsd, type Runtime } from '#kernel';
import type { ReportedBill } from './reported-bill.ts';

/**
 * Returns the item of a call. What the provider reports about its bill is stored as evidence, and changes neither cost
 * nor price. Usage that has no price in the tariff costs `heldAmount`, and is reported as an error.
 */
export function createChargeItem(
  tariff: Tariff,
  call: CallUsage & { readonly reportedBill?: ReportedBill | undefined },
  heldAmount: PicoUsd,
  { reportError }: Pick<Runtime, 'reportError'>,
): ChargeItem {
  const { reportedBill, ...usage } = call;
  const use = { ...usage, ...toEvidence(usage, reportedBill) };
  try {
    return toChargeItem(tariff, use);
  } catch (error) {
    if (!(error instanceof UnpricedUnitError)) throw error;
    reportError(`usage of ${tariff.of} by ${tariff.provider} has no price`, error);
    const unpriced = toChargeItem(tariff, { ...use, usage: NO_USAGE });
    return { ...unpriced, usage: toUsageJson(use.usage), price: money.toJsonAmount(heldAmount) };
  }
}

function toEvidence(
  { terms }: CallUsage,
  { cost, terms: reportedTerms }: ReportedBill = {},
): Pick<CallUsage, 'terms' | 'reportedCost'> {
  return {
    ...(reportedTerms ? { terms: { ...reportedTerms, ...terms } } : {}),
    ...(cost === undefined ? {} : { reportedCost: money.toJsonAmount(cost) }),
  };
}
