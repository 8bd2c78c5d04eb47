/** A model of a simulated provider, with its own prices: independent of the product's catalogue. */
import { parseUsd } from '#kernel';

/** USD for a million tokens by class, and USD for each request. */
export type PriceInUsd = Readonly<Record<'input' | 'cachedInput' | 'output' | 'request', string>>;
/** Pico-USD per token, and per request. */
export type SandboxPrice = Readonly<Record<keyof PriceInUsd, bigint>>;

export interface SandboxModel {
  readonly id: string;
  /** What the answer calls the model. */
  readonly snapshot: string;
  readonly context: number;
  readonly maxOutput: number;
  readonly price: SandboxPrice;
}

const TOKENS_PER_PRICE = 1_000_000n;

/** The models of a provider by their ids. */
export function createModels<Offer>(
  offers: Readonly<Record<string, Offer & { readonly usd: PriceInUsd }>>,
): ReadonlyMap<string, Omit<Offer, 'usd'> & { readonly id: string; readonly price: SandboxPrice }> {
  return new Map(
    Object.entries(offers).map(([id, { usd, ...properties }]) => [id, { ...properties, id, price: priceFrom(usd) }]),
  );
}

function priceFrom({ input, cachedInput, output, request }: PriceInUsd): SandboxPrice {
  return {
    input: perToken(input),
    cachedInput: perToken(cachedInput),
    output: perToken(output),
    request: parseUsd(request),
  };
}

function perToken(usdPerMillion: string): bigint {
  const pico = parseUsd(usdPerMillion);
  if (pico % TOKENS_PER_PRICE !== 0n) throw new RangeError(`${usdPerMillion} USD is not whole pico-USD per token`);
  return pico / TOKENS_PER_PRICE;
}
