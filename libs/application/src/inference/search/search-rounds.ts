/**
 * Prepares the rounds of a chat with searches: the model calls the search tool, the gateway searches, and the model is
 * called again with the results. Usage is known after every round. A round or search is started only if the rest of
 * the hold pays for it.
 */
import type { Endpoint, TokenPricedModel } from '#catalogue';
import { getQuantity } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError } from '../../errors.ts';
import type { SearchQuery, SearchResult, SearchStatus, WebSearchResponse } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { countAffordableOutputTokens, getInputUnit, getMinOutputTokens } from '../chat/chat-quote.ts';
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

export interface SearchRoundsParams {
  readonly plan: ToolSearchPlan;
  /** The request without the web search tool. */
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  /** The caller's limit of output tokens for all rounds together; undefined if the request has none. */
  readonly requestedMaxTokens: number | undefined;
  search(query: SearchQuery): Promise<WebSearchResponse>;
}

/** One call of the model. */
export interface Round {
  readonly body: ChatBody;
  /** Maximum output tokens; undefined for the model's maximum. */
  readonly limit: number | undefined;
  /** Whether the model may call the search tool. */
  readonly hasSearchTool: boolean;
}

export class SearchRounds {
  readonly toolName: string;
  private body: ChatBody;
  private started = 0;
  /** Number of billed searches. */
  private billed = 0;

  constructor(
    private readonly request: SearchRoundsParams,
    private readonly purchase: Purchase,
  ) {
    this.body = request.body;
    this.toolName = chooseToolName(request.body);
  }

  /** Creates the first round, which may be sent to any of these endpoints. */
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
   * Extends a partial hold if it does not pay for another search and a response. Called before the next round is
   * created. If the extension fails, that round has no search tool.
   * @throws UpstreamError if the hold has ended
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

  /** Creates the next round; undefined if the money or the remaining output tokens are not sufficient for one. */
  createNextRound(endpoint: Endpoint): Round | undefined {
    const bodyWithTool = addSearchTool(this.body, this.toolName, { first: false, later: true });
    const hasSearchTool = this.canAffordSearch(endpoint, bodyWithTool);
    const body = hasSearchTool ? bodyWithTool : disableSearchTool(this.body, this.toolName, endpoint);
    const limit = Math.min(this.remainingTokens, this.countAffordableOutput(endpoint, body));
    return limit < getMinOutputTokens(endpoint) ? undefined : { body, limit: this.toOutputLimit(limit), hasSearchTool };
  }

  /**
   * Makes the searches that the model requested, as many as the plan allows and the hold pays for, and adds the results
   * to the next round.
   * @throws UpstreamError if the request was aborted
   */
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

  /** Makes and bills one search; undefined if it failed and was not billed. @throws UpstreamError after an abort */
  private async fetchResults(query: string): Promise<readonly SearchResult[] | undefined> {
    const { plan } = this.request;
    const { signal } = this.purchase;
    try {
      const response = await this.request.search({ ...plan, query, signal });
      this.purchase.billSearches(plan.fee, 1, response);
      this.billed++;
      return response.results;
    } catch (error) {
      if (signal.aborted) throw toUpstreamError(signal.reason);
      this.purchase.reportProblem('a web search failed', error);
      return undefined; // the model gets a message about the failure and continues
    }
  }

  private add(message: Readonly<Record<string, unknown>>): void {
    this.body = { ...this.body, messages: [...this.body.messages, message] };
  }

  /**
   * Whether the plan allows another search, and the hold pays for a round with a search call, the search, and a round
   * with a response.
   */
  private canAffordSearch(endpoint: Endpoint, body: ChatBody): boolean {
    if (this.started >= this.request.plan.maxUses) return false;
    return this.calculateSearchRoundPrice(endpoint, body) <= this.purchase.remaining;
  }

  private calculateSearchRoundPrice(endpoint: Endpoint, body: ChatBody): PicoUsd {
    const { plan, model } = this.request;
    const tokens = { ...this.getSearchTokens(body), searches: this.billed };
    return calculateMinSearchRoundPrice(plan, tokens, model, endpoint);
  }

  /** Whether output tokens remain, and the hold pays for a search and the round that reads its results. */
  private canAffordResults(endpoint: Endpoint, body: ChatBody): boolean {
    const { plan, model } = this.request;
    const needed = money.add(
      calculateSearchPrice(plan.fee, 1, this.billed),
      calculateMinResponsePrice(plan, this.getSearchTokens(body), model, endpoint),
    );
    return this.remainingTokens > 0 && needed <= this.purchase.remaining;
  }

  /** Omits the limit if the caller set none and the limit is not below the model's maximum. */
  private toOutputLimit(limit: number): number | undefined {
    const { requestedMaxTokens, model } = this.request;
    return requestedMaxTokens === undefined && limit >= model.maxOutput ? undefined : limit;
  }

  private countAffordableOutput(endpoint: Endpoint, body: ChatBody): number {
    const { input, inputUnit } = this.getSearchTokens(body);
    const read = Math.min(input, this.request.model.context);
    return countAffordableOutputTokens(this.purchase.remaining, read, endpoint.tariff, inputUnit);
  }

  private getSearchTokens(body: ChatBody) {
    const input = countMaxChatInputTokens(body, this.request.model);
    return { input, inputUnit: getInputUnit(body), output: this.remainingTokens };
  }

  /** Output tokens that remain within the caller's limit or the model's maximum. */
  private get remainingTokens(): number {
    const { requestedMaxTokens, model } = this.request;
    return (requestedMaxTokens ?? model.maxOutput) - getQuantity('output', this.purchase.usage);
  }
}
