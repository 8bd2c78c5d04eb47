import { usd } from '#kernel';
import { type Bill, NO_TOKENS } from '../bill.ts';
import type { Answer } from './answer.ts';
import type { Fault } from './directive.ts';

/** Anthropic's price of a search: 10 USD for 1,000. */
const OWN_SEARCH = {
  id: 'anthropic/web_search',
  price: { input: 0n, cachedInput: 0n, output: 0n, request: usd('0.01') as bigint },
};

/**
 * Puts a delivered answer on the bill.
 * @param id what the provider calls it
 * @param visible how many visible tokens were delivered, of all choices together
 */
export function charge(bill: Bill, id: string, answer: Answer, visible: number, fault: Fault | undefined): void {
  const { model, n, input, cached, reasoning, searches } = answer;
  const tokens = { input: input - cached, cached_input: cached, output: n * reasoning + visible };
  bill.charge(id, model, fault === 'zero' ? NO_TOKENS : tokens, fault);
  if (fault === 'zero') return;
  for (const { failed } of searches) if (!failed) bill.charge(id, OWN_SEARCH, NO_TOKENS, fault);
}
