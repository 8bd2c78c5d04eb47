/** A model of a simulated provider. Its prices are independent of the gateway's catalogue. */
import { parseUsd } from '#kernel';

/** USD per million tokens by class, and USD per request. */
export type PriceInUsd = Readonly<Record<'input' | 'cachedInput' | 'output' | 'request', string>>;
/** Pico-USD per token, and per request. */
export type SandboxPrice = Readonly<Record<keyof PriceInUsd, bigint>>;

export interface SandboxModel {
  readonly id: string;
  /** The model name in responses. */
  readonly snapshot: string;
  readonly context: number;
  readonly maxOutput: number;
  readonly price: SandboxPrice;
}

const TOKENS_PER_PRICE = 1_000_000n;

/** Returns the models of a provider by id. */
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
  if (pico % TOKENS_PER_PRICE !== 0n)
    throw new RangeError(`${usdPerMillion} USD per million tokens is finer than 1 pUSD per token`);
  return pico / TOKENS_PER_PRICE;
}
