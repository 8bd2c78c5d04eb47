/** What images are sold for, and what is billed for a call that has made some, or none. */
import type { Endpoint, MediaChoices } from '#catalogue';
import { type CallUsage, calculateCost, calculatePrice, type Tariff, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { GeneratedImages } from '../../providers/media-calls.ts';

const NOT_DELIVERED = 'not_delivered';
/** For what the tokens of an image cost. */
const SCALE = 1_000_000;

/** The price of so many images, whoever of these makes them. */
export function calculateImagePrice(count: number, endpoints: readonly Endpoint[], choices: MediaChoices): PicoUsd {
  return money.max(...endpoints.map(({ tariff }) => calculatePrice({ image: count }, tariff.prices, choices)));
}

/**
 * What a call comes to: images that were delivered at their price, and what is invoiced beyond them at the house's cost.
 * @param delivered how many of those that were made
 */
export function toCallUsages(
  { files, usage, vendorId }: GeneratedImages,
  delivered: number,
  { tariff }: Endpoint,
  choices: MediaChoices,
): readonly CallUsage[] {
  const details = { terms: choices, ...(vendorId === undefined ? {} : { vendorId }) };
  const absorbed = { absorbed: NOT_DELIVERED };
  if (isBilledByTokens(tariff)) {
    const tokens = usage ?? estimateTokens(files.length, tariff, choices);
    const use = { ...details, usage: { ...tokens, image: delivered }, estimated: usage === undefined };
    return [delivered > 0 ? use : { ...use, ...absorbed }];
  }
  const lost = Math.max((usage?.image ?? files.length) - delivered, 0);
  return [
    ...(delivered > 0 ? [{ ...details, usage: { image: delivered }, estimated: false }] : []),
    ...(lost > 0 ? [{ ...details, ...absorbed, usage: { image: lost }, estimated: false }] : []),
  ];
}

/** What a call that failed is invoiced for: as its vendor says, or, where its answer is lost, all that it was to make. */
export function toLostUsage(count: number, usage: Usage | undefined, { tariff }: Endpoint, choices: MediaChoices) {
  const all = isBilledByTokens(tariff) ? estimateTokens(count, tariff, choices) : { image: count };
  return { usage: usage ?? all, terms: choices };
}

function isBilledByTokens({ prices }: Tariff): boolean {
  return prices.some(({ unit }) => unit === 'imageOutput');
}

/** Where the vendor does not say: as many as cost what the images are sold for, which is rather too many. */
function estimateTokens(images: number, { prices }: Tariff, choices: MediaChoices): Usage {
  const costPerMillion = calculateCost({ imageOutput: SCALE }, prices, choices);
  if (costPerMillion === 0n) return { imageOutput: 0 };
  return { imageOutput: Number((calculatePrice({ image: images }, prices, choices) * BigInt(SCALE)) / costPerMillion) };
}
