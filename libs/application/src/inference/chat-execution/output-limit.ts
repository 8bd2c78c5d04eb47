/** Limits the output of a call to what its hold pays for. */
import { money, type PicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { calculateFixedShare, countAffordableTokensPerChoice } from '../chat/chat-quote.ts';
import type { ChatOrder } from './quote-chat.ts';

/**
 * Extends a partial hold before a call during which it cannot be extended. The hold may have been sized for another
 * endpoint, during whose calls it can be extended, and would be too small for this call.
 */
export async function extendToFixedShare(purchase: Purchase): Promise<void> {
  if (purchase.order.partialHold === undefined) return;
  const { amount, availableAfter } = purchase.hold;
  const share = money.min(calculateFixedShare(money.add(amount, availableAfter)), purchase.order.maxPrice);
  if (amount < share) await purchase.extendHold({ minAmount: amount, targetAmount: share });
}

/**
 * Returns the caller's output limit per choice. If the quote has a partial hold or the caller set no limit, the result
 * is at most what the amount pays for.
 * @returns undefined for the model's maximum
 */
export function getOutputLimit({ quote, resolved }: ChatOrder, amount: PicoUsd): number | undefined {
  const { maxOutput } = resolved.model;
  if (quote.partialHold === undefined && quote.requestedMaxTokens !== undefined) return quote.requestedMaxTokens;
  const limit = Math.min(quote.requestedMaxTokens ?? maxOutput, countAffordableTokensPerChoice(amount, quote));
  return quote.requestedMaxTokens !== undefined || limit < maxOutput ? limit : undefined;
}
