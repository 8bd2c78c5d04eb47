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
   * What the creditor may invoice at most for an attempt without a response. It is unknown whether it does, so no item of
   * a charge includes this cost, and the ledger does not contain it.
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

export type CallUsage = Pick<ChargeItem, 'usage' | 'estimated' | 'beside' | 'vendorId' | 'terms' | 'absorbed'>;

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
  { usage, estimated, beside, vendorId, terms, absorbed }: CallUsage,
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
    price: absorbed === undefined ? money.toJsonAmount(price) : '0',
  };
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
