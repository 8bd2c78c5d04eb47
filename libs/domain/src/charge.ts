/** What a request costs: one charge for each request, with one item for each call that a provider invoices. */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import {
  calculateCostAndPrice,
  type Price,
  type PriceJson,
  type PriceTerms,
  toUsageJson,
  type Usage,
} from './tariff.ts';
import type { Amount } from './value-types.ts';

/** What is sold, who serves it and who invoices it. */
export interface Seller {
  /** The catalogue's name of the model or service; null if an event of an older version did not name it. */
  readonly of: string | null;
  /** The provider that serves it. */
  readonly provider: string;
  /** The provider that invoices it. For an endpoint of a router this is the router, not the provider that it calls. */
  readonly creditor: string;
}

/** One call of a model or service. */
export interface ChargeItem extends Seller {
  /** An additional service of the request, such as a web search. Its revenue is posted under its own name. */
  readonly beside?: true;
  /** The provider's id of its response, for finding the line of its invoice. */
  readonly vendorId?: string;
  readonly usage: Usage;
  /** What the price depends on, such as the tier that the response reported. */
  readonly terms?: PriceTerms;
  /** The provider did not report the usage, so the gateway counted it. */
  readonly estimated: boolean;
  /** Why the operator absorbs the item: the ledger has its cost, its price is 0. */
  readonly absorbed?: string;
  /** What the creditor will invoice. */
  readonly cost: Amount;
  /**
   * The cost that the creditor reported with its response. It is only evidence: the ledger contains `cost`, and no charge
   * depends on it.
   */
  readonly reportedCost?: Amount;
  readonly price: Amount;
}

/** One attempt to call a provider for a request. */
export interface Attempt {
  readonly provider: string;
  readonly creditor: string;
  /** The catalogue's name of the model; null if an event of an older version did not name it. */
  readonly model: string | null;
  readonly vendorId?: string;
  /** `ok`, or the error code of the failure. */
  readonly outcome: string;
  /** HTTP status of the provider, if it responded. */
  readonly status?: number;
  readonly milliseconds: number;
  /**
   * What the creditor may invoice at most for an attempt without a response, or for what it counted before the attempt
   * failed. It is unknown whether it does, so no item of a charge includes this cost, and the ledger does not contain it.
   */
  readonly openCost?: Amount;
}

/** A charge with its evidence, from which it can be calculated again with the named price list. */
export interface Charge {
  readonly items: readonly ChargeItem[];
  /** Sums over the items. */
  readonly cost: Amount;
  readonly price: Amount;
  readonly priceList: string;
  readonly attempts: readonly Attempt[];
  /** Why the request failed or its response ended early, if so. */
  readonly errorCode?: string;
}

/** The prices of one model or service of one provider. */
export interface Tariff extends Seller {
  readonly of: string;
  readonly prices: readonly Price[];
}

/** A tariff in the form in which price lists store it. */
export interface PriceListLine extends Seller {
  readonly of: string;
  readonly prices: readonly PriceJson[];
}

export type CallUsage = Pick<
  ChargeItem,
  'usage' | 'estimated' | 'beside' | 'vendorId' | 'terms' | 'absorbed' | 'reportedCost'
>;

/** No provider is known to have longer ids. */
const MAX_REQUEST_ID_LENGTH = 200;

/** Omits an implausibly long id, because events and read models would store it permanently, or reject it. */
export function toProviderRequestIdFields(vendorId: string | undefined): Pick<ChargeItem, 'vendorId'> {
  return vendorId === undefined || vendorId.length > MAX_REQUEST_ID_LENGTH ? {} : { vendorId };
}

/**
 * Returns a call with its cost and price, each rounded once. The price of an absorbed call is 0.
 * @throws UnpricedUnitError if no line of the tariff applies to a used unit; RangeError for a quantity that is not a
 *   non-negative safe integer
 */
export function toChargeItem(
  { of, provider, creditor, prices }: Tariff,
  { usage, estimated, beside, vendorId, terms, absorbed, reportedCost }: CallUsage,
): ChargeItem {
  const { cost, price } = calculateCostAndPrice(usage, prices, terms);
  return {
    of,
    provider,
    creditor,
    ...(beside ? { beside } : {}),
    ...toProviderRequestIdFields(vendorId),
    usage: toUsageJson(usage),
    ...(terms === undefined ? {} : { terms }),
    estimated,
    ...(absorbed === undefined ? {} : { absorbed }),
    cost: money.toJsonAmount(cost),
    ...(reportedCost === undefined ? {} : { reportedCost }),
    price: absorbed === undefined ? money.toJsonAmount(price) : '0',
  };
}

/** A reported cost may differ from the calculated one by this part of it. */
const TOLERATED_PART = 100n;
/** Maximum rounding of a reported cost: one millionth of a USD. */
const MAX_ROUNDING = 1_000_000n;

/**
 * Whether the cost that a creditor reported differs by more than 1 % from the calculated one. A difference of one unit
 * of its last digit is rounding, up to one millionth of a USD.
 * @returns undefined if the creditor reported no cost
 */
export function hasDifferentCost({
  cost,
  reportedCost,
}: Pick<ChargeItem, 'cost' | 'reportedCost'>): boolean | undefined {
  if (reportedCost === undefined) return undefined;
  const [calculated, reported] = [BigInt(cost), BigInt(reportedCost)];
  const difference = reported > calculated ? reported - calculated : calculated - reported;
  return difference * TOLERATED_PART > calculated && difference > getRounding(reported);
}

function getRounding(reported: bigint): bigint {
  let lastDigit = 1n;
  while (lastDigit < MAX_ROUNDING && reported % (lastDigit * 10n) === 0n) lastDigit *= 10n;
  return lastDigit;
}

export function toCharge(items: readonly ChargeItem[], rest: Omit<Charge, 'items' | 'cost' | 'price'>): Charge {
  return {
    items,
    cost: money.toJsonAmount(calculateTotal(items, 'cost')),
    price: money.toJsonAmount(calculateTotal(items, 'price')),
    ...rest,
  };
}

function calculateTotal(items: readonly ChargeItem[], amount: 'cost' | 'price'): PicoUsd {
  return items.reduce((sum, item) => money.add(sum, money.parseJsonAmount(item[amount])), ZERO_USD);
}
