import { type Bill, NO_TOKENS } from '../bill.ts';
import type { Answer } from './answer.ts';
import type { Fault } from './directive.ts';

/**
 * Puts a delivered answer on the bill.
 * @param id what the provider calls it
 * @param visible how many visible tokens were delivered, of all choices together
 */
export function charge(bill: Bill, id: string, answer: Answer, visible: number, fault: Fault | undefined): void {
  const { model, n, input, cached, reasoning } = answer;
  const tokens = { input: input - cached, cached_input: cached, output: n * reasoning + visible };
  bill.charge(id, model, fault === 'zero' ? NO_TOKENS : tokens, fault);
}
