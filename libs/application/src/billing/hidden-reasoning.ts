import { countAffordableUnits, type Price } from '#domain';
import type { PicoUsd } from '#kernel';
import type { UsageEstimate } from './upstream-call.ts';

/**
 * Adds hidden reasoning to the usage that a call estimates.
 * @param tokens estimated from the time without output
 * @param maxAmount limits the reasoning to what this amount pays for in addition to the other usage
 */
export function addHiddenReasoning(
  call: UsageEstimate,
  tokens: number,
  maxAmount: PicoUsd,
  prices: readonly Price[],
): UsageEstimate {
  return {
    estimateUsage: async (delivered) => {
      const usage = await call.estimateUsage(delivered);
      const affordable = countAffordableUnits(maxAmount, { unit: 'output', beside: { ...usage, request: 1 } }, prices);
      return { ...usage, reasoning: Math.min(tokens, Math.max(affordable, 0)) };
    },
  };
}
