/** What was sold, and what it came to: one item for each call, one charge for each request. */
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

/** What is sold, and the creditor of its cost. */
export interface Seller {
  /** Our name of the model or service; null where a fact of before did not name it. */
  readonly of: string | null;
  /** The provider that does it. */
  readonly provider: string;
  /** The vendor that invoices it: of a router's endpoint the router, not the provider behind it. */
  readonly creditor: string;
}

/** One call of a model or service. */
export interface ChargeItem extends Seller {
  /** It was used for what was asked, and is revenue in its own name: a web search beside its model. */
  readonly beside?: true;
  /** The vendor's own id of its answer, by which a line of its invoice can be found. */
  readonly vendorId?: string;
  readonly usage: Usage;
  /** What the price depended on, as the answer said it. */
  readonly terms?: PriceTerms;
  /** True when no upstream reported the usage, so that it was counted here. */
  readonly estimated: boolean;
  /** Why the house bears it: its cost is booked, its price is 0. */
  readonly absorbed?: string;
  /** What the creditor will invoice. */
  readonly cost: Amount;
  readonly price: Amount;
}

/** One call that was tried for a charge. */
export interface Attempt {
  readonly provider: string;
  readonly creditor: string;
  /** Our name of the model; null where a fact of before did not name it. */
  readonly model: string | null;
  readonly vendorId?: string;
  /** `ok`, or why it failed. */
  readonly outcome: string;
  /** HTTP status of the upstream, where it answered. */
  readonly status?: number;
  readonly milliseconds: number;
}

/** The evidence of a charge: enough to compute it again from the named price list. */
export interface Charge {
  readonly items: readonly ChargeItem[];
  /** Sums over the items. */
  readonly cost: Amount;
  readonly price: Amount;
  readonly priceList: string;
  readonly attempts: readonly Attempt[];
  /** Why an answer ended early, where it did. */
  readonly errorCode?: string;
}

/** What one model or service of one provider is sold by. */
export interface Tariff extends Seller {
  readonly of: string;
  readonly prices: readonly Price[];
}

/** A tariff as a price list has it. */
export interface PriceListLine extends Seller {
  readonly of: string;
  readonly prices: readonly PriceJson[];
}

/** What is known of a call, beside its seller. */
export type CallUsage = Pick<ChargeItem, 'usage' | 'estimated' | 'beside' | 'vendorId' | 'terms' | 'absorbed'>;

/** Longer than any id that a vendor gives. */
const MAX_REQUEST_ID_LENGTH = 200;

/** An id that can be one: whatever else a vendor says in its place would be in the books for ever, if they take it at all. */
export function toProviderRequestIdFields(vendorId: string | undefined): Pick<ChargeItem, 'vendorId'> {
  return vendorId === undefined || vendorId.length > MAX_REQUEST_ID_LENGTH ? {} : { vendorId };
}

/** A call with its amounts, rounded once. @throws UnpricedUnitError */
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
