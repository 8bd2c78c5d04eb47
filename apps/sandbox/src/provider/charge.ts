import { parseUsd } from '#kernel';
import { NO_TOKENS, type SandboxBill } from '../bill.ts';
import type { Fault } from './directive.ts';
import type { SandboxModelOutput } from './model-output.ts';

/** The price of a search, of Anthropic as of OpenAI: 10 USD for 1,000. */
const SEARCH_PRICE = { input: 0n, cachedInput: 0n, output: 0n, request: parseUsd('0.01') as bigint };

/** Vendors whose usage reports searches: a zero usage is without them. OpenAI reports them in the answer alone. */
const PROVIDERS_REPORTING_SEARCHES = new Set(['anthropic']);

/** An answer as it was delivered. */
interface DeliveredOutput {
  /** What the provider calls it. */
  readonly id: string;
  readonly output: SandboxModelOutput;
  /** How many visible tokens were delivered, of all choices together. */
  readonly visible: number;
  readonly fault: Fault | undefined;
}

/** Puts a delivered answer on the bill of a provider. */
export function chargeOutput(
  bill: SandboxBill,
  provider: string,
  { id, output, visible, fault }: DeliveredOutput,
): void {
  const { model, n, input, cached, reasoning, searches } = output;
  const tokens = { input: input - cached, cached_input: cached, output: n * reasoning + visible };
  bill.charge(id, model, fault === 'zero' ? NO_TOKENS : tokens, fault);
  if (fault === 'zero' && PROVIDERS_REPORTING_SEARCHES.has(provider)) return;
  for (const { failed } of searches)
    if (!failed) bill.charge(id, { id: `${provider}/web_search`, price: SEARCH_PRICE }, NO_TOKENS, fault);
}
