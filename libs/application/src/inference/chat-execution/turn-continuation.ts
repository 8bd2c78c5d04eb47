/** Decides whether a turn that a provider has paused is continued, and how much the further call may use. */
import type { Endpoint } from '#catalogue';
import { getQuantity, type Tariff, type Usage } from '#domain';
import { money } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import type { PausedResponse } from '../../providers/provider.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import { type ChatQuote, countAffordableTokensPerChoice, getMinOutputTokens } from '../chat/chat-quote.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import { quoteNativeSearch, RESPONSE_TOKENS } from '../search/search-quote.ts';
import type { QuotedChat } from './quote-chat.ts';

/**
 * Maximum number of calls that continue one turn. Each of them bills the conversation again. Anthropic pauses after
 * about ten searches, and a request has at most three.
 */
export const MAX_CONTINUATIONS = 3;

/** The call that continues a turn. */
export interface ContinuedCall {
  readonly pausedResponse: PausedResponse;
  /** Maximum output tokens. */
  readonly limit: number;
  readonly search: NativeSearch;
}

export interface ContinuationParams extends Pick<QuotedChat, 'body' | 'resolved' | 'quote' | 'extraInputTokens'> {
  /** The searches that the first call permitted. */
  readonly native: NativeSearch;
  readonly searchFee: Tariff;
}

export class TurnContinuation {
  private count = 0;

  constructor(
    private readonly params: ContinuationParams,
    private readonly purchase: Purchase,
  ) {}

  /**
   * Creates the next call for a paused turn, and extends a partial hold if it does not pay for that call. The call may
   * make the searches that are left and that the hold pays for.
   * @param usage of the last call
   * @returns undefined if the number of calls, the output tokens or the money are used up
   * @throws UpstreamError if the hold has ended
   */
  async createCall(
    endpoint: Endpoint,
    pausedResponse: PausedResponse,
    usage: Usage,
  ): Promise<ContinuedCall | undefined> {
    if (this.count++ >= MAX_CONTINUATIONS) return undefined;
    const { native } = this.params;
    const minSearches = pausedResponse.isSearching ? 1 : 0;
    const maxSearches = Math.max(native.maxUses - pausedResponse.searches, minSearches);
    const quote = (searches: number) => this.quoteCall(endpoint, usage, searches);
    await this.extendHold(quote(maxSearches));
    for (let maxUses = maxSearches; maxUses >= minSearches; maxUses--) {
      const quoted = quote(maxUses);
      if (quoted.minPrice > this.purchase.remaining) continue;
      const limit = Math.min(this.remainingTokens, countAffordableTokensPerChoice(this.purchase.remaining, quoted));
      if (limit < getMinOutputTokens(endpoint)) return undefined;
      return { pausedResponse, limit, search: { ...native, maxUses } };
    }
    return undefined;
  }

  /** Extends a partial hold as far as money is available. */
  private async extendHold({ minPrice }: ChatQuote): Promise<void> {
    const { purchase } = this;
    const { hold, remaining, order } = purchase;
    const missing = money.subtract(minPrice, remaining);
    if (order.partialHold === undefined || missing <= 0n) return;
    const minAmount = money.add(hold.amount, missing);
    await purchase.extendHold({ minAmount, targetAmount: money.add(minAmount, order.partialHold.minAmount) });
  }

  /**
   * Quotes a call with this number of searches and a short response. The call reads the input and the output of the last
   * one, which is more than its conversation: with searches, the last call has read its input several times.
   */
  private quoteCall(endpoint: Endpoint, usage: Usage, searches: number): ChatQuote {
    const { body, resolved, extraInputTokens, searchFee } = this.params;
    const { model } = resolved;
    const carriedTokens = getQuantity('input', usage) + getQuantity('output', usage);
    return quoteNativeSearch({ fee: searchFee, billsInput: true }, searches, {
      body: { ...body, max_completion_tokens: Math.min(this.remainingTokens, RESPONSE_TOKENS) },
      model,
      endpoints: [endpoint],
      extraInputTokens: extraInputTokens + Math.max(carriedTokens - countMaxChatInputTokens(body, model), 0),
    });
  }

  /** Output tokens that remain within the caller's limit or the model's maximum. */
  private get remainingTokens(): number {
    const { quote, resolved } = this.params;
    const { usage } = this.purchase;
    const limit = quote.requestedMaxTokens ?? resolved.model.maxOutput;
    return Math.max(limit - getQuantity('output', usage) - getQuantity('reasoning', usage), 0);
  }
}
