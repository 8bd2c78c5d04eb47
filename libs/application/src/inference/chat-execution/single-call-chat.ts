/** Calls a model for a chat, and executes chats that need only one such call. */
import type { Endpoint } from '#catalogue';
import { getQuantity, type Tariff, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Hold } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { EndpointResponse, UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, type UpstreamError } from '../../errors.ts';
import {
  type Completion,
  type CompletionIdentity,
  type CompletionStream,
  type ProviderRegistry,
  type SseEventSink,
  toCallResult,
} from '../../providers/provider.ts';
import type { NativeSearch, SearchResult, SearchStatus } from '../../providers/web-search.ts';
import { getMaxReasoningTokens } from '../../routing/endpoint-health.ts';
import { mapNotFoundError } from '../../routing/preferences.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import { type ChatBody, toUpstreamBody } from '../chat/chat-body.ts';
import { calculateFixedShare, countAffordableTokensPerChoice } from '../chat/chat-quote.ts';
import {
  type ChatExecutor,
  type CompletionDraft,
  type CompletionSink,
  type CompletionWriter,
  createLengthLimitEvents,
  toCompletionSource,
} from '../chat/completion-writer.ts';
import { countInputTokens } from '../chat/count-tokens.ts';
import type { InferenceServices } from '../chat/inference-services.ts';
import { toUpstreamResponsesBody, usesNativeResponses } from '../responses/native-request.ts';
import { createCitationEvent, withCitations } from '../search/results.ts';
import { type ChatOrder, canExtendHold, usesGatewaySearch } from './quote-chat.ts';
import { StreamCollector } from './stream-collector.ts';
import { UsageMeter } from './usage-meter.ts';

export interface SingleCallOrder extends ChatOrder {
  /** Results of a search before the call. */
  readonly searchResults?: readonly SearchResult[];
  /** The states of that search as they are reported to the client. */
  readonly searches?: readonly SearchStatus[];
  /** The searches that the provider may make itself. */
  readonly native?: NativeSearch;
  /** The fee for each search that the provider invoices. */
  readonly searchFee?: Tariff;
}

/** Executes a chat with one call of the model. */
export class SingleCallChat implements ChatExecutor {
  private readonly call: UpstreamCall<Completion | CompletionStream>;

  constructor(
    private readonly order: SingleCallOrder,
    private readonly purchase: Purchase,
    private readonly services: InferenceServices,
  ) {
    const { body, native } = order;
    const estimateUsage = createUsageEstimate(purchase, services.tokenCounter);
    const callUpstream = createUpstreamCall(order, purchase, services.providers, native);
    this.call = {
      send: async (endpoint) => {
        if (this.isExtensible(endpoint)) {
          return await callUpstream(endpoint, {
            body,
            limit: getOutputLimit(order, purchase.hold.maxSpendable),
            stream: true,
          });
        }
        if (purchase.order.partialHold !== undefined) await this.extendToFixedShare();
        return await callUpstream(endpoint, {
          body,
          limit: getOutputLimit(order, purchase.hold.amount),
          stream: order.stream,
        });
      },
      estimateUsage: (delivered) => estimateUsage(body, delivered),
    };
  }

  async complete(): Promise<CompletionDraft> {
    const { order, purchase, call } = this;
    const { searchResults, searches = [] } = order;
    const served = await purchase.call(call);
    const { response } = served;
    if (response.kind === 'stream') return this.collectStream({ ...served, response });
    await purchase.billCall(call, toCallResult(response));
    this.recordOutputLength();
    this.billSearches(response, response.searches?.invoiced);
    const body = searchResults ? withCitations(response.body, searchResults) : response.body;
    return {
      ...toCompletionSource(order.resolved.model, served),
      body,
      searches: response.searches?.statuses ?? searches,
    };
  }

  async stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    const { purchase, call } = this;
    const served = (await purchase.call(call)) as EndpointResponse<CompletionStream>;
    client.begin(toCompletionSource(this.order.resolved.model, served));
    return this.forwardStream(served, client);
  }

  /** Reads a stream into a non-streaming completion. Only a stream lets the hold be extended during the completion. */
  private async collectStream(served: EndpointResponse<CompletionStream>): Promise<CompletionDraft> {
    const { model } = this.order.resolved;
    const source = toCompletionSource(model, served);
    const collector = new StreamCollector(
      served.response.protocol,
      createCompletionIdentity(this.order, this.purchase.hold)(served.endpoint),
    );
    const failure = await this.forwardStream(served, collector).catch(toUpstreamError);
    // An interrupted completion fails the request, except after a disconnect: the payer owes what was generated.
    if (failure && failure.code !== 'client_disconnected') throw this.purchase.markLastAttemptFailed(failure);
    this.purchase.endedBy = failure;
    return { ...source, body: collector.body, searches: collector.searches };
  }

  private async forwardStream(
    served: EndpointResponse<CompletionStream>,
    client: CompletionSink,
  ): Promise<UpstreamError | undefined> {
    const { purchase, call } = this;
    const { response } = served;
    const meter = this.createMeter(served);
    let failure: UpstreamError | undefined;
    const sink: SseEventSink = (events, search) =>
      search === undefined ? client.write(events) : client.writeSearch?.(search);
    try {
      await this.sendSearches(served, client);
      await response.pipeTo(meter ? meter.wrapSink(sink) : sink);
    } catch (error) {
      failure = toUpstreamError(error);
    }
    await meter?.finish();
    if (meter?.isUsedUp) return this.endAtHoldLimit(served, meter, client);
    const usage = await purchase.billStream(call, served);
    this.recordOutputLength(failure);
    await meter?.recordRatio(getQuantity('output', usage) - (usage.reasoning ?? 0));
    this.billSearches(response, response.countInvoicedSearches?.());
    // After a disconnect, the payer owes what was generated. After any other failure, the payer owes nothing unless
    // output was forwarded.
    const owes = response.usage() !== undefined || response.getDeliveredText() !== '' || Boolean(usage.reasoning);
    const owesAfterDisconnect = failure?.code === 'client_disconnected' && owes;
    if (!failure || owesAfterDisconnect || response.hasForwarded()) return failure;
    throw failure;
  }

  /**
   * Called when the hold is used up: ends the completion as if it had reached its output limit. Bills the estimated
   * input, and at most the output that the hold covers.
   */
  private async endAtHoldLimit(
    { response, endpoint }: EndpointResponse<CompletionStream>,
    meter: UsageMeter,
    client: CompletionSink,
  ): Promise<undefined> {
    const { order, purchase } = this;
    const identity = createCompletionIdentity(order, purchase.hold)(endpoint);
    await client.write(createLengthLimitEvents(response.protocol, identity, order.quote.choices));
    const countText = this.services.tokenCounter.createRequiredCount(purchase.payerId);
    const input = await countInputTokens(order.body, countText);
    const usage = async () => ({ input, output: meter.chargedTokens });
    const callResult = { usage: undefined, getDeliveredText: () => '', vendorId: response.vendorId() };
    await purchase.billCall({ estimateUsage: usage }, callResult);
  }

  private createMeter({ response, endpoint }: EndpointResponse<CompletionStream>): UsageMeter | undefined {
    if (!this.isExtensible(endpoint)) return undefined;
    const { order, purchase } = this;
    const { quote, lengths, getTokensPerSecond } = order;
    const params = {
      purchase,
      quote,
      endpoint,
      lengths,
      tokensPerSecond: getTokensPerSecond(endpoint),
      maxReasoningTokens: getMaxReasoningTokens(endpoint, response),
      countText: this.services.tokenCounter.createRequiredCount(purchase.payerId),
    };
    return new UsageMeter(params, response);
  }

  /**
   * Whether a call may use more than is held at its start. Its provider must stop generating and billing when the
   * gateway disconnects, because the call is aborted if the hold cannot be extended.
   */
  private isExtensible({ onDisconnect }: Endpoint): boolean {
    const { hold, order } = this.purchase;
    const isFullyHeld = order.partialHold === undefined || hold.amount >= order.maxPrice;
    return !isFullyHeld && onDisconnect === 'stops' && canExtendHold(this.order.plan);
  }

  /**
   * Extends a partial hold before a call during which it cannot be extended. The hold may have been sized for another
   * endpoint, during whose calls it can be extended, and would be too small for this call.
   */
  private async extendToFixedShare(): Promise<void> {
    const { purchase } = this;
    const { amount, availableAfter } = purchase.hold;
    const share = money.min(calculateFixedShare(money.add(amount, availableAfter)), purchase.order.maxPrice);
    if (amount < share) await purchase.extendHold({ minAmount: amount, targetAmount: share });
  }

  private recordOutputLength(failure?: UpstreamError): void {
    const { purchase, order } = this;
    if (!failure)
      order.lengths.recordLength(order.resolved.model.id, purchase.payerId, getQuantity('output', purchase.usage));
  }

  /** Sends the states and sources of a search that was made before the call. */
  private async sendSearches({ endpoint }: EndpointResponse<CompletionStream>, client: CompletionSink): Promise<void> {
    const { order, purchase } = this;
    const { searchResults = [], searches = [] } = order;
    for (const search of searches) {
      await client.writeSearch?.({ ...search, state: 'searching' });
      await client.writeSearch?.(search);
    }
    if (searchResults.length > 0)
      await client.write(createCitationEvent(createCompletionIdentity(order, purchase.hold)(endpoint), searchResults));
  }

  private billSearches(completion: Completion | CompletionStream, invoiced = 0): void {
    const { searchFee } = this.order;
    if (searchFee) this.purchase.billSearches(searchFee, invoiced, completion.vendorId());
  }
}

/**
 * Returns the caller's output limit per choice. If the quote has a partial hold or the caller set no limit, the result
 * is at most what the amount pays for.
 * @returns undefined for the model's maximum
 */
function getOutputLimit({ quote, resolved }: ChatOrder, amount: PicoUsd): number | undefined {
  const { maxOutput } = resolved.model;
  if (quote.partialHold === undefined && quote.requestedMaxTokens !== undefined) return quote.requestedMaxTokens;
  const limit = Math.min(quote.requestedMaxTokens ?? maxOutput, countAffordableTokensPerChoice(amount, quote));
  return quote.requestedMaxTokens !== undefined || limit < maxOutput ? limit : undefined;
}

/** Calls one endpoint, with a Responses request if the endpoint and the request allow it, else with a chat request. */
export type CallUpstream = (endpoint: Endpoint, params: UpstreamCallParams) => Promise<Completion | CompletionStream>;

export interface UpstreamCallParams {
  readonly body: ChatBody;
  /** Maximum output tokens per choice; undefined for the model's maximum. */
  readonly limit: number | undefined;
  readonly stream: boolean;
}

/** @param search the searches that the provider may make itself */
export function createUpstreamCall(
  order: ChatOrder,
  purchase: Purchase,
  providers: ProviderRegistry,
  search?: NativeSearch,
): CallUpstream {
  const { hold, signal } = purchase;
  const { resolved, reasoning, plan, responses } = order;
  const identity = createCompletionIdentity(order, hold);
  return (endpoint, { body, limit, stream }) => {
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + resolved.forwardedSuffix };
    const isNative =
      responses !== undefined && !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, limit);
    const protocol = isNative ? 'responses' : 'chat';
    const callProvider = providers.get(hold, upstream, protocol);
    purchase.markStreaming(stream ? endpoint : undefined);
    const response = callProvider({
      protocol,
      protocols: speaks,
      body: isNative
        ? toUpstreamResponsesBody({ ...responses, body: { ...responses.body, stream } }, target, limit, reasoning)
        : toUpstreamBody({ ...body, stream }, target, limit, reasoning),
      stream,
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      signal,
    });
    return mapNotFoundError(resolved, endpoint, response);
  };
}

export function createCompletionIdentity(
  { resolved, created }: ChatOrder,
  { holdId }: Hold,
): (endpoint: Endpoint) => CompletionIdentity {
  return ({ provider }) => ({ id: `gen-${holdId}`, model: resolved.model.id, provider, created });
}

/** Returns a function that estimates usage that no provider reported, from the generated text. */
export function createUsageEstimate({ payerId }: Purchase, tokenCounter: TokenCounter) {
  const countText = tokenCounter.createRequiredCount(payerId);
  return async (body: ChatBody, delivered: string): Promise<Usage> => {
    const [input, output] = await Promise.all([countInputTokens(body, countText), countText(delivered)]);
    return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  };
}
