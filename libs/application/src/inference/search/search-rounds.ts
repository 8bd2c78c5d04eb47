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
  disableSearchTool,
  parseSearchQuery,
  type RoundOutput,
  type SearchCall,
  toAssistantMessage,
  toolName,
} from './search-tool.ts';

const MAX_QUERY = 2_000;

const NO_MORE = 'There are no more searches to be had. Answer with what there is.';
const NO_QUERY = 'Nothing was searched for: the call has no query.';
const FAILED = 'The search failed. Answer without it, and say so where that matters.';

/** What the answer is made with. */
export interface RoundsRequest {
  readonly plan: ToolSearchPlan;
  /** Without the tool that asked for the search. */
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  /** The caller's own limit of output tokens, for all rounds together. */
  readonly wanted: number | undefined;
  search(query: SearchQuery): Promise<WebSearchResponse>;
}

/** One call of the model. */
export interface Round {
  readonly body: ChatBody;
  /** Output tokens at most; undefined for as many as the model makes. */
  readonly limit: number | undefined;
  /** Whether it may call for a search. */
  readonly offers: boolean;
}

export class SearchRounds {
  readonly name: string;
  private body: ChatBody;
  private started = 0;
  /** Searches that are on the bill. */
  private billed = 0;

  constructor(
    private readonly request: RoundsRequest,
    private readonly purchase: Purchase,
  ) {
    this.body = request.body;
    this.name = toolName(request.body);
  }

  /** The first call, for any endpoint. */
  first(endpoints: readonly Endpoint[]): Round {
    const { plan, model, wanted } = this.request;
    const offered = addSearchTool(this.body, this.name, { first: plan.first, later: false });
    const offers = endpoints.every((endpoint) => this.affordsSearch(endpoint, offered));
    const body = offers ? offered : this.body;
    const afforded = Math.min(...endpoints.map((endpoint) => this.affordedOutput(endpoint, body)));
    const limit = Math.min(offers ? this.room : (wanted ?? model.maxOutput), afforded);
    return { body, limit: this.limitOf(limit), offers };
  }

  /**
   * Holds what another search and the round that reads it need, where not all is held that they may cost, before the search
   * is offered. Without it the next call is one that cannot search.
   * @throws UpstreamError when nothing is held any more
   */
  async reserve(endpoint: Endpoint): Promise<void> {
    const { purchase } = this;
    const { hold, left, sale } = purchase;
    if (sale.part === undefined || this.started >= this.request.plan.maxUses) return;
    const short = money.subtract(this.priceOfSearch(endpoint, this.body), left);
    if (short <= 0n) return;
    const atLeast = money.add(hold.amount, short);
    await purchase.grow({ minAmount: atLeast, targetAmount: money.add(atLeast, sale.part.minAmount) });
  }

  /** The next call; undefined when there is no money, or no room within the caller's limit. */
  next(endpoint: Endpoint): Round | undefined {
    const offered = addSearchTool(this.body, this.name, { first: false, later: true });
    const offers = this.affordsSearch(endpoint, offered);
    const body = offers ? offered : disableSearchTool(this.body, this.name, endpoint);
    const limit = Math.min(this.room, this.affordedOutput(endpoint, body));
    return limit < getMinOutputTokens(endpoint) ? undefined : { body, limit: this.limitOf(limit), offers };
  }

  /** Makes the searches that the model has called for, as far as there is money for them. @throws UpstreamError when time is up */
  async search(endpoint: Endpoint, said: RoundOutput, notify: (note: SearchStatus) => Promise<void> | undefined) {
    const found: SearchResult[] = [];
    this.add(toAssistantMessage(this.name, said));
    for (const call of said.calls) {
      const content = await this.answerTo(call, endpoint, found, notify);
      this.add({ role: 'tool', tool_call_id: call.id, content });
    }
    return found;
  }

  private async answerTo(
    call: SearchCall,
    endpoint: Endpoint,
    found: SearchResult[],
    notify: (note: SearchStatus) => Promise<void> | undefined,
  ): Promise<string> {
    const { plan } = this.request;
    const query = parseSearchQuery(call.arguments)?.slice(0, MAX_QUERY);
    if (this.started >= plan.maxUses) return NO_MORE;
    const at = this.started++;
    if (query === undefined) return NO_QUERY;
    if (!this.affordsResults(endpoint, this.body)) return NO_MORE;
    await notify({ at, query, state: 'searching' });
    const results = await this.resultsOf(query);
    if (results) found.push(...results);
    await notify(results ? { at, query, state: 'completed', found: results } : { at, query, state: 'failed' });
    return results ? formatResults(results) : FAILED;
  }

  /** Undefined when the search failed: that costs nothing. @throws UpstreamError when the time is up */
  private async resultsOf(query: string): Promise<readonly SearchResult[] | undefined> {
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
  private affordsSearch(endpoint: Endpoint, body: ChatBody): boolean {
    if (this.started >= this.request.plan.maxUses) return false;
    return this.priceOfSearch(endpoint, body) <= this.purchase.left;
  }

  private priceOfSearch(endpoint: Endpoint, body: ChatBody): PicoUsd {
    const { plan, model } = this.request;
    const tokens = { input: countMaxChatInputTokens(body, model), output: this.room, searches: this.billed };
    return calculateMinSearchRoundPrice(plan, tokens, model, endpoint);
  }

  /** Whether there is money for a search and the round that reads it. */
  private affordsResults(endpoint: Endpoint, body: ChatBody): boolean {
    const { plan, model } = this.request;
    const needed = money.add(
      calculateSearchPrice(plan.fee, 1, this.billed),
      calculateMinResponsePrice(
        plan,
        { input: countMaxChatInputTokens(body, model), output: this.room },
        model,
        endpoint,
      ),
    );
    return this.room > 0 && needed <= this.purchase.left;
  }

  /** A limit that the model has anyway need not be named. */
  private limitOf(limit: number): number | undefined {
    const { wanted, model } = this.request;
    return wanted === undefined && limit >= model.maxOutput ? undefined : limit;
  }

  private affordedOutput(endpoint: Endpoint, body: ChatBody): number {
    return countAffordableOutputTokens(this.purchase.left, this.inputOf(body), endpoint.tariff);
  }

  private inputOf(body: ChatBody): number {
    const { model } = this.request;
    return Math.min(countMaxChatInputTokens(body, model), model.context);
  }

  /** Output tokens that the limit leaves. */
  private get room(): number {
    const { wanted, model } = this.request;
    return (wanted ?? model.maxOutput) - getQuantity('output', this.purchase.usage);
  }
}
