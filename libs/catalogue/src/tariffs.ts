/** Converts the prices of data files to tariffs. */
import { type CostAndPrice, calculateCostAndPrice, type Price, type Tariff, type Unit, type Usage } from '#domain';
import { money, ZERO_USD } from '#kernel';
import type { DataEndpointFile } from './data-endpoint-file.ts';
import type { FeeFile } from './data-files.ts';
import { parseMargin } from './field-schemas.ts';
import { BILLED_TOKEN_UNITS, type MediaEndpointFile, type MediaUnit } from './media-file.ts';
import { type EndpointFile, type OfferFile, toSlug } from './model-file.ts';

/** Token prices are listed per this number of tokens. */
export const LIST_PRICE_TOKENS = 1_000_000;
const BASIS_POINTS = 10_000n;

/** The billed unit and its quantity for each unit in which media prices are listed. */
export const LIST_PRICE_UNITS: Readonly<Record<MediaUnit, { readonly unit: Unit; readonly quantity: number }>> = {
  image: { unit: 'image', quantity: 1 },
  second: { unit: 'videoSecond', quantity: 1 },
  clip: { unit: 'clip', quantity: 1 },
  minute: { unit: 'audioMillisecond', quantity: 60_000 },
  '1k_characters': { unit: 'character', quantity: 1_000 },
};

/** Returns the list price of a usage. If prices depend on the input size, those of the smallest inputs apply. */
export function calculateListPrice(usage: Usage, { prices }: Tariff): CostAndPrice {
  return calculateCostAndPrice(usage, prices, { inputTokens: 0 });
}

/**
 * Builds the tariff of an endpoint that is priced by tokens, with the prices of the longest inputs first. Token classes
 * without a price in the file are charged like their base class: cached input as input, reasoning as output.
 */
export function toModelTariff(model: string, endpoint: EndpointFile): Tariff {
  const { usdPerMillionTokens, usdPerRequest = '0', tiers = [], margin } = endpoint;
  const prices: Price[] = [];
  for (const unit of ['input', 'cacheRead', 'cacheWrite', 'cacheWriteHour', 'output', 'reasoning'] as const) {
    const toPrice = (usd: string) => createPrice(unit, BigInt(LIST_PRICE_TOKENS), usd, margin);
    for (const { above, usdPerMillionTokens: tierPrices } of tiers.toReversed())
      if (tierPrices[unit] !== undefined)
        prices.push({ ...toPrice(tierPrices[unit]), when: { inputTokens: { above } } });
    const usd = usdPerMillionTokens[unit];
    if (usd !== undefined) prices.push(toPrice(usd));
  }
  return { ...toSeller(model, endpoint), prices: [...prices, createPrice('request', 1n, usdPerRequest, margin)] };
}

/** Whether an endpoint caches content for an hour on request, which has a price of its own. */
export function cachesForHour({ tariff }: { readonly tariff: Tariff }): boolean {
  return tariff.prices.some(({ unit }) => unit === 'cacheWriteHour');
}

/** Returns the input sizes above which the prices of a tariff change, in ascending order. */
export function listTiers({ prices }: Tariff): readonly number[] {
  const sizes = prices.flatMap(({ when }) => {
    const size = when?.inputTokens;
    return typeof size === 'object' ? [size.above] : [];
  });
  return [...new Set(sizes)].sort((a, b) => a - b);
}

/** Returns the list price of a usage in a call with `above` + 1 input tokens. */
export function calculateTierPrice(usage: Usage, { prices }: Tariff, above: number): CostAndPrice {
  return calculateCostAndPrice(usage, prices, { inputTokens: above + 1 });
}

/**
 * Builds the tariff of a media endpoint. Prices of variants come before the default price, because the first match
 * wins.
 */
export function toMediaTariff(model: string, endpoint: MediaEndpointFile): Tariff {
  const { usdPerUnit, usdPerMillionTokens: billed, margin } = endpoint;
  const { unit, quantity } = LIST_PRICE_UNITS[usdPerUnit.unit];
  const toPrice = (usd: string): Price => {
    const { cost, ...price } = createPrice(unit, BigInt(quantity), usd, margin);
    return billed ? price : { ...price, cost };
  };
  const variants = (usdPerUnit.variants ?? []).map(({ when, usd }) => ({ ...toPrice(usd), when }));
  const tokens = BILLED_TOKEN_UNITS.flatMap((token): readonly Price[] => {
    const usd = billed?.[token];
    return usd === undefined ? [] : [{ unit: token, per: BigInt(LIST_PRICE_TOKENS), cost: money.parseUsd(usd) }];
  });
  return { ...toSeller(model, endpoint), prices: [...variants, toPrice(usdPerUnit.usd), ...tokens] };
}

/**
 * Builds the tariff of a service. All services are web searches: invoiced per search, sold per search or per request.
 */
export function toServiceTariff({
  name,
  provider,
  upstream,
  costUsd,
  costUsdPerExtraResult,
  priceUsd = '0',
  priceUsdPerRequest = '0',
}: FeeFile): Tariff {
  const slug = toSlug(provider);
  const search: Price = { unit: 'search', per: 1n, cost: money.parseUsd(costUsd), price: money.parseUsd(priceUsd) };
  const request: Price = { unit: 'request', per: 1n, cost: ZERO_USD, price: money.parseUsd(priceUsdPerRequest) };
  const prices = [search, request];
  if (costUsdPerExtraResult !== undefined)
    prices.push({ unit: 'result', per: 1n, cost: money.parseUsd(costUsdPerExtraResult), price: ZERO_USD });
  return { of: name, provider: slug, creditor: upstream ?? slug, prices };
}

/** Builds the tariff of a data lookup, which is sold per lookup and invoiced per lookup or per result. */
export function toDataTariff({
  provider,
  action,
  upstream,
  baseUsd,
  costUsd,
  margin,
  billed,
}: DataEndpointFile): Tariff {
  const { cost: baseCost, ...price } = createPrice('lookup', 1n, baseUsd, margin);
  const cost = costUsd === undefined ? baseCost : money.parseUsd(costUsd) * price.per;
  const prices: readonly Price[] = billed
    ? [price, { unit: 'result', per: 1n, cost: money.parseUsd(billed.usd) }]
    : [{ ...price, cost }];
  return { of: `${provider}/${action}`, provider, creditor: upstream, prices };
}

/** Returns the key that identifies a line of a price list. */
export function toLineKey({ of, provider, creditor }: Pick<Tariff, 'of' | 'provider' | 'creditor'>): string {
  return [of, provider, creditor].join(' ');
}

/** The creditor is the provider that is called: with a router in between, the router. */
function toSeller(of: string, { provider, upstream }: OfferFile) {
  return { of, provider: toSlug(provider), creditor: upstream };
}

/**
 * Returns cost and price for `per` units. If the margin results in a fraction of a pico-USD, both are for 10,000 times
 * as many units, so that they are exact.
 */
function createPrice(unit: Unit, per: bigint, usd: string, margin: string): Required<Omit<Price, 'when'>> {
  const cost: bigint = money.parseUsd(usd);
  const price = cost * parseMargin(margin);
  return price % BASIS_POINTS === 0n
    ? { unit, per, cost, price: price / BASIS_POINTS }
    : { unit, per: per * BASIS_POINTS, cost: cost * BASIS_POINTS, price };
}
