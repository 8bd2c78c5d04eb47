/**
 * An answer in rounds: the model calls for searches, they are made, and it is asked again with what they found. What has
 * been used is known after every round, and nothing is started that the rest of the hold does not afford.
 */
import type { Endpoint, TokenPricedModel } from '#catalogue';
import { getQuantity } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError } from '../../errors.ts';
import type { SearchQuery, SearchResult, SearchStatus, WebSearchResponse } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { countAffordableOutputTokens, getMinOutputTokens } from '../chat/chat-quote.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import { formatResults } from './results.ts';
import type { ToolSearchPlan } from './search-plan.ts';
import { calculateMinResponsePrice, calculateMinSearchRoundPrice, calculateSearchPrice } from './search-quote.ts';
import {
  addSearchTool,
  chooseToolName,
  disableSearchTool,
  parseSearchQuery,
  type RoundOutput,
  type SearchCall,
  toAssistantMessage,
} from './search-tool.ts';

const MAX_QUERY_LENGTH = 2_000;

const NO_SEARCHES_LEFT = 'There are no more searches to be had. Answer with what there is.';
const NO_QUERY = 'Nothing was searched for: the call has no query.';
const SEARCH_FAILED = 'The search failed. Answer without it, and say so where that matters.';

/** What the answer is made with. */
export interface SearchRoundsParams {
  readonly plan: ToolSearchPlan;
  /** Without the tool that asked for the search. */
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  /** The caller's own limit of output tokens, for all rounds together. */
  readonly requestedMaxTokens: number | undefined;
  search(query: SearchQuery): Promise<WebSearchResponse>;
}

/** One call of the model. */
export interface Round {
  readonly body: ChatBody;
  /** Output tokens at most; undefined for as many as the model makes. */
  readonly limit: number | undefined;
  /** Whether it may call for a search. */
  readonly hasSearchTool: boolean;
}

export class SearchRounds {
  readonly toolName: string;
  private body: ChatBody;
  private started = 0;
  /** Searches that are on the bill. */
  private billed = 0;

  constructor(
    private readonly request: SearchRoundsParams,
    private readonly purchase: Purchase,
  ) {
    this.body = request.body;
    this.toolName = chooseToolName(request.body);
  }

  /** The first call, for any endpoint. */
  createFirstRound(endpoints: readonly Endpoint[]): Round {
    const { plan, model, requestedMaxTokens } = this.request;
    const bodyWithTool = addSearchTool(this.body, this.toolName, { first: plan.isRequired, later: false });
    const hasSearchTool = endpoints.every((endpoint) => this.canAffordSearch(endpoint, bodyWithTool));
    const body = hasSearchTool ? bodyWithTool : this.body;
    const affordableTokens = Math.min(...endpoints.map((endpoint) => this.countAffordableOutput(endpoint, body)));
    const limit = Math.min(
      hasSearchTool ? this.remainingTokens : (requestedMaxTokens ?? model.maxOutput),
      affordableTokens,
    );
    return { body, limit: this.toOutputLimit(limit), hasSearchTool };
  }

  /**
   * Holds what another search and the round that reads it need, where not all is held that they may cost, before the search
   * is offered. Without it the next call is one that cannot search.
   * @throws UpstreamError when nothing is held any more
   */
  async reserveSearch(endpoint: Endpoint): Promise<void> {
    const { purchase } = this;
    const { hold, remaining, order } = purchase;
    if (order.partialHold === undefined || this.started >= this.request.plan.maxUses) return;
    const short = money.subtract(this.calculateSearchRoundPrice(endpoint, this.body), remaining);
    if (short <= 0n) return;
    const minAmount = money.add(hold.amount, short);
    await purchase.extendHold({ minAmount, targetAmount: money.add(minAmount, order.partialHold.minAmount) });
  }

  /** The next call; undefined when there is no money, or no room within the caller's limit. */
  createNextRound(endpoint: Endpoint): Round | undefined {
    const bodyWithTool = addSearchTool(this.body, this.toolName, { first: false, later: true });
    const hasSearchTool = this.canAffordSearch(endpoint, bodyWithTool);
    const body = hasSearchTool ? bodyWithTool : disableSearchTool(this.body, this.toolName, endpoint);
    const limit = Math.min(this.remainingTokens, this.countAffordableOutput(endpoint, body));
    return limit < getMinOutputTokens(endpoint) ? undefined : { body, limit: this.toOutputLimit(limit), hasSearchTool };
  }

  /** Makes the searches that the model has called for, as far as there is money for them. @throws UpstreamError when time is up */
  async search(
    endpoint: Endpoint,
    roundOutput: RoundOutput,
    onStatus: (status: SearchStatus) => Promise<void> | undefined,
  ) {
    const allResults: SearchResult[] = [];
    this.add(toAssistantMessage(this.toolName, roundOutput));
    for (const call of roundOutput.calls) {
      const content = await this.runSearch(call, endpoint, allResults, onStatus);
      this.add({ role: 'tool', tool_call_id: call.id, content });
    }
    return allResults;
  }

  private async runSearch(
    call: SearchCall,
    endpoint: Endpoint,
    allResults: SearchResult[],
    onStatus: (status: SearchStatus) => Promise<void> | undefined,
  ): Promise<string> {
    const { plan } = this.request;
    const query = parseSearchQuery(call.arguments)?.slice(0, MAX_QUERY_LENGTH);
    if (this.started >= plan.maxUses) return NO_SEARCHES_LEFT;
    const at = this.started++;
    if (query === undefined) return NO_QUERY;
    if (!this.canAffordResults(endpoint, this.body)) return NO_SEARCHES_LEFT;
    await onStatus({ at, query, state: 'searching' });
    const results = await this.fetchResults(query);
    if (results) allResults.push(...results);
    await onStatus(results ? { at, query, state: 'completed', results } : { at, query, state: 'failed' });
    return results ? formatResults(results) : SEARCH_FAILED;
  }

  /** Undefined when the search failed: that costs nothing. @throws UpstreamError when the time is up */
  private async fetchResults(query: string): Promise<readonly SearchResult[] | undefined> {
    const { plan } = this.request;
    const { signal } = this.purchase;
    try {
      const { results, vendorId } = await this.request.search({ ...plan, query, signal });
      this.purchase.billSearches(plan.fee, 1, vendorId);
      this.billed++;
      return results;
    } catch {
      if (signal.aborted) throw toUpstreamError(signal.reason);
      return undefined; // the model learns of it, and goes on
    }
  }

  private add(message: Readonly<Record<string, unknown>>): void {
    this.body = { ...this.body, messages: [...this.body.messages, message] };
  }

  /** Whether there is money for this round with a call in it, the search, and another round to say what it found. */
  private canAffordSearch(endpoint: Endpoint, body: ChatBody): boolean {
    if (this.started >= this.request.plan.maxUses) return false;
    return this.calculateSearchRoundPrice(endpoint, body) <= this.purchase.remaining;
  }

  private calculateSearchRoundPrice(endpoint: Endpoint, body: ChatBody): PicoUsd {
    const { plan, model } = this.request;
    const tokens = { input: countMaxChatInputTokens(body, model), output: this.remainingTokens, searches: this.billed };
    return calculateMinSearchRoundPrice(plan, tokens, model, endpoint);
  }

  /** Whether there is money for a search and the round that reads it. */
  private canAffordResults(endpoint: Endpoint, body: ChatBody): boolean {
    const { plan, model } = this.request;
    const needed = money.add(
      calculateSearchPrice(plan.fee, 1, this.billed),
      calculateMinResponsePrice(
        plan,
        { input: countMaxChatInputTokens(body, model), output: this.remainingTokens },
        model,
        endpoint,
      ),
    );
    return this.remainingTokens > 0 && needed <= this.purchase.remaining;
  }

  /** A limit that the model has anyway need not be named. */
  private toOutputLimit(limit: number): number | undefined {
    const { requestedMaxTokens, model } = this.request;
    return requestedMaxTokens === undefined && limit >= model.maxOutput ? undefined : limit;
  }

  private countAffordableOutput(endpoint: Endpoint, body: ChatBody): number {
    return countAffordableOutputTokens(this.purchase.remaining, this.getInputTokens(body), endpoint.tariff);
  }

  private getInputTokens(body: ChatBody): number {
    const { model } = this.request;
    return Math.min(countMaxChatInputTokens(body, model), model.context);
  }

  /** Output tokens that the limit leaves. */
  private get remainingTokens(): number {
    const { requestedMaxTokens, model } = this.request;
    return (requestedMaxTokens ?? model.maxOutput) - getQuantity('output', this.purchase.usage);
  }
}
