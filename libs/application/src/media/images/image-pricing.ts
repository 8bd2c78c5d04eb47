/** Prices of images, and what is billed for a call that generated images or failed. */
import type { Endpoint, MediaChoices } from '#catalogue';
import { type CallUsage, calculateCost, calculatePrice, type Tariff, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { GeneratedImages } from '../../providers/media-calls.ts';

const NOT_DELIVERED = 'not_delivered';
/** Scale for calculating the cost of image tokens. */
const SCALE = 1_000_000;

/** Returns the price of a number of images at the most expensive of these endpoints. */
export function calculateImagePrice(count: number, endpoints: readonly Endpoint[], choices: MediaChoices): PicoUsd {
  return money.max(...endpoints.map(({ tariff }) => calculatePrice({ image: count }, tariff.prices, choices)));
}

/**
 * Returns what is billed for a call: delivered images at their price, and other invoiced images as a cost that the
 * operator absorbs.
 * @param delivered number of generated images that were delivered
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

/**
 * Returns what the provider invoices for a failed call: as reported, or, if the response is lost, all requested images.
 */
export function toLostUsage(count: number, usage: Usage | undefined, { tariff }: Endpoint, choices: MediaChoices) {
  const all = isBilledByTokens(tariff) ? estimateTokens(count, tariff, choices) : { image: count };
  return { usage: usage ?? all, terms: choices };
}

function isBilledByTokens({ prices }: Tariff): boolean {
  return prices.some(({ unit }) => unit === 'imageOutput');
}

/**
 * Estimates tokens that the provider did not report: their cost equals the price of the images. This is more likely too
 * many than too few.
 */
function estimateTokens(images: number, { prices }: Tariff, choices: MediaChoices): Usage {
  const costPerMillion = calculateCost({ imageOutput: SCALE }, prices, choices);
  if (costPerMillion === 0n) return { imageOutput: 0 };
  return { imageOutput: Number((calculatePrice({ image: images }, prices, choices) * BigInt(SCALE)) / costPerMillion) };
}
