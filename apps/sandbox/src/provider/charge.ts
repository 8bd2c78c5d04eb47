import { type PicoUsd, parseUsd, toPicoUsd } from '#kernel';
import { type BilledTokens, type LineOrigin, NO_TOKENS, type SandboxBill } from '../bill.ts';
import type { Fault } from './directive.ts';
import type { SandboxModelOutput } from './model-output.ts';

/** The price of a web search in USD. OpenRouter bills those of xAI at xAI's price. */
const SEARCH_PRICES: Readonly<Record<string, string>> = {
  anthropic: '0.01',
  openai: '0.01',
  google: '0.014',
  openrouter: '0.005',
};

/**
 * Providers whose usage includes searches: if they report a usage of zero, no searches are billed. OpenAI reports
 * searches only in the output.
 */
const PROVIDERS_REPORTING_SEARCHES = new Set(['anthropic', 'openrouter']);

/** Returns the number of searches that a provider bills: the successful ones. */
export function countBilledSearches(
  provider: string,
  { searches }: SandboxModelOutput,
  fault: Fault | undefined,
): number {
  if (fault === 'zero' && PROVIDERS_REPORTING_SEARCHES.has(provider)) return 0;
  return searches.filter(({ failed }) => !failed).length;
}

export function calculateSearchCost(provider: string, searches: number): PicoUsd {
  return toPicoUsd(BigInt(searches) * parseUsd(SEARCH_PRICES[provider] ?? '0'));
}

/** @param visible the visible tokens that are billed, of all choices together */
export function countBilledTokens(
  { n, input, cached, hourCacheWrites, reasoning }: SandboxModelOutput,
  visible: number,
  fault: Fault | undefined,
): BilledTokens {
  if (fault === 'zero') return NO_TOKENS;
  return {
    input: input - cached,
    cached_input: cached,
    output: n * reasoning + visible,
    ...(hourCacheWrites > 0 ? { hour_cache_writes: hourCacheWrites } : {}),
  };
}

interface DeliveredOutput {
  /** The response id of the provider. */
  readonly id: string;
  readonly output: SandboxModelOutput;
  /** The visible tokens that are billed, of all choices together. */
  readonly visible: number;
  readonly origin: LineOrigin;
}

/** Adds a response and its successful searches to the bill. */
export function chargeOutput(
  bill: SandboxBill,
  provider: string,
  { id, output, visible, origin }: DeliveredOutput,
): void {
  const { model } = output;
  bill.charge(id, model, countBilledTokens(output, visible, origin.fault), origin);
  const price = { input: 0n, cachedInput: 0n, output: 0n, request: calculateSearchCost(provider, 1) };
  for (let count = countBilledSearches(provider, output, origin.fault); count > 0; count--)
    bill.charge(id, { id: `${provider}/web_search`, price }, NO_TOKENS, origin);
}
