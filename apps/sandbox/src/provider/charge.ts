import { parseUsd } from '#kernel';
import { type BilledTokens, type LineOrigin, NO_TOKENS, type SandboxBill } from '../bill.ts';
import type { Fault } from './directive.ts';
import type { SandboxModelOutput } from './model-output.ts';

/** Anthropic and OpenAI charge the same for a web search: 10 USD per 1,000. */
const SEARCH_PRICE = { input: 0n, cachedInput: 0n, output: 0n, request: parseUsd('0.01') as bigint };

/**
 * Providers whose usage includes searches: if they report a usage of zero, no searches are billed. OpenAI reports
 * searches only in the output.
 */
const PROVIDERS_REPORTING_SEARCHES = new Set(['anthropic']);

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
  const { model, searches } = output;
  bill.charge(id, model, countBilledTokens(output, visible, origin.fault), origin);
  if (origin.fault === 'zero' && PROVIDERS_REPORTING_SEARCHES.has(provider)) return;
  for (const { failed } of searches)
    if (!failed) bill.charge(id, { id: `${provider}/web_search`, price: SEARCH_PRICE }, NO_TOKENS, origin);
}
