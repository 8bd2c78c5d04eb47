import { calculateCost, type PriceTerms, type Tariff } from '#domain';
import { money, type PicoUsd, ZERO_USD } from '#kernel';

/** What a provider reports about its bill of one call, in addition to the usage. */
export interface ReportedBill {
  /** What the provider bills for the call; undefined if it reports no cost. */
  readonly cost?: PicoUsd;
  /**
   * Conditions of its price that it names, such as `service_tier`, if they are not the ones that the gateway requests.
   */
  readonly terms?: PriceTerms;
  /** Tokens that only the total of the usage includes, such as hidden reasoning. They are not charged. */
  readonly uncountedTokens?: number;
  /** The provider reports a cost that cannot be true. */
  readonly isImplausible?: true;
}

/** What bills a web search. */
export interface SearchBill {
  readonly vendorId?: string | undefined;
  /** Number of results that are invoiced in addition to the search. */
  readonly extraResults?: number;
  readonly reportedBill?: ReportedBill;
}

/**
 * Returns the report about a call without the cost of the searches that its provider made. The provider reports one cost
 * for both, and the searches are an item of their own.
 * @param fee of these searches
 */
export function omitSearchCost(bill: ReportedBill, fee: Tariff, searches: number): ReportedBill {
  if (bill.cost === undefined || searches === 0) return bill;
  const searchCost = calculateCost({ search: searches }, fee.prices);
  return { ...bill, cost: money.max(money.subtract(bill.cost, searchCost), ZERO_USD) };
}
