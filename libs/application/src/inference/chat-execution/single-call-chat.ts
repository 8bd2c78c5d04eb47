/** Calls a model for a chat, and executes chats that need only one such call. */
import type { Endpoint } from '#catalogue';
import { getQuantity, type Usage } from '#domain';
import type { Purchase } from '../../billing/purchase.ts';
import { billTruncatedResponse } from '../../billing/truncated-response.ts';
import { type EndpointResponse, measureUsage, toStreamResult, type UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, type UpstreamError } from '../../errors.ts';
import {
  type ChatCall,
  type Completion,
  type CompletionStream,
  type SseEventSink,
  toCallResult,
} from '../../providers/provider.ts';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';
import { getMaxReasoningTokens, getTypicalLatency } from '../../routing/endpoint-health.ts';
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
import { insertCitations, withCitations } from '../search/results.ts';
import type { OutputLengthStats } from './output-length-stats.ts';
import { extendToFixedShare, getOutputLimit } from './output-limit.ts';
import { type ChatOrder } from './quote-chat.ts';
import { StreamCollector } from './stream-collector.ts';
import { createCompletionIdentity, createUpstreamCall, createUsageEstimate } from './upstream-call.ts';
import { UsageMeter } from './usage-meter.ts';

export interface SingleCallOrder extends ChatOrder {
  /** Results of a search before the call. */
  readonly searchResults?: readonly SearchResult[];
  /** The states of that search as they are reported to the client. */
  readonly searches?: readonly SearchStatus[];
}

type ReportedUsage = Pick<CompletionStream, 'usage' | 'vendorId' | 'reportedBill' | 'getDeliveredText'>;

/** Of a response that has not started. */
const NOTHING_REPORTED: ReportedUsage = {
  usage: () => undefined,
  vendorId: () => undefined,
  getDeliveredText: () => '',
};

interface MeteredCall {
  readonly endpoint: Endpoint;
  /** The output limit of one choice as it is sent to the provider. */
  readonly maxOutputTokens: number;
  /** Undefined if only the output limit limits the reasoning. */
  readonly maxReasoningTokens: number | undefined;
}

/** Executes a chat with one call of the model. */
export class SingleCallChat implements ChatExecutor {
  private readonly call: UpstreamCall<Completion | CompletionStream>;
  /** Meters the last call, if its provider may use more than is held at its start. */
  private meter: UsageMeter | undefined;
  private recordLength: ReturnType<OutputLengthStats['start']> | undefined;

  constructor(
    private readonly order: SingleCallOrder,
    private readonly purchase: Purchase,
    private readonly services: InferenceServices,
  ) {
    const { body } = order;
    const estimateUsage = createUsageEstimate(purchase, services.tokenCounter);
    const callUpstream = createUpstreamCall(order, purchase, services.providers);
    this.call = {
      send: async (endpoint) => {
        const { limitPrice } = purchase.hold;
        if (limitPrice !== undefined && this.isExtensible(endpoint)) {
          const limit = getOutputLimit(order, limitPrice);
          return await this.callMetered((onSend) => callUpstream(endpoint, { body, limit, stream: true, onSend }), {
            endpoint,
            maxOutputTokens: limit ?? order.resolved.model.maxOutput,
          });
        }
        await extendToFixedShare(purchase);
        const limit = getOutputLimit(order, purchase.hold.amount);
        return await callUpstream(endpoint, { body, limit, stream: order.stream });
      },
      estimateUsage: (delivered) => estimateUsage(body, delivered),
    };
  }

  complete(): Promise<CompletionDraft> {
    return this.measureLength(() => this.callAndCollect());
  }

  stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    return this.measureLength(async () => {
      const served = (await this.callModel()) as EndpointResponse<CompletionStream>;
      client.begin(toCompletionSource(this.order.resolved.model, served));
      return this.forwardStream(served, client);
    });
  }

  /** Serves a completion whose length is recorded if it is known. */
  private async measureLength<T>(serve: () => Promise<T>): Promise<T> {
    const { order, purchase } = this;
    this.recordLength = order.lengths.start(order.resolved.model, purchase.payerId);
    try {
      return await serve();
    } finally {
      this.recordLength();
    }
  }

  private async callAndCollect(): Promise<CompletionDraft> {
    const { order, purchase, call } = this;
    const { searchResults, searches = [] } = order;
    const served = await this.callModel();
    const { response } = served;
    if (response.kind === 'stream') return this.collectStream({ ...served, response });
    await purchase.billCall(call, toCallResult(response));
    this.recordOutputLength();
    const body = searchResults ? withCitations(response.body, searchResults) : response.body;
    return {
      ...toCompletionSource(order.resolved.model, served),
      body,
      searches: response.searches?.statuses ?? searches,
    };
  }

  /**
   * Calls the model. If the hold was used up before the response started, by hidden reasoning, bills the estimated usage.
   * @throws UpstreamError if the call fails
   */
  private async callModel(): Promise<EndpointResponse<Completion | CompletionStream>> {
    try {
      return await this.purchase.call(this.call);
    } catch (error) {
      const failure = this.meter?.endedBy;
      if (this.meter && failure) await this.billTruncated(this.meter, failure, NOTHING_REPORTED);
      throw error;
    }
  }

  /** Makes a call whose usage is metered from when its request is sent. */
  private async callMetered(
    send: (onSend: ChatCall['onSend']) => Promise<Completion | CompletionStream>,
    target: Omit<MeteredCall, 'maxReasoningTokens'>,
  ): Promise<Completion | CompletionStream> {
    const startMeter = (maxReasoningTokens: number | undefined) => {
      this.meter = this.createMeter({ ...target, maxReasoningTokens });
    };
    try {
      const response = await send(startMeter);
      if (response.kind === 'stream') this.meter?.setCompletion(response);
      else await this.meter?.finish();
      return response;
    } catch (error) {
      await this.meter?.finish();
      throw error;
    }
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
    const { meter } = this;
    let failure: UpstreamError | undefined;
    const identity = createCompletionIdentity(this.order, purchase.hold)(served.endpoint);
    const write = insertCitations((events) => client.write(events), identity, this.order.searchResults);
    const sink: SseEventSink = (events, search) =>
      search === undefined ? write(events) : client.writeSearch?.(search);
    try {
      await this.sendSearches(client);
      await response.pipeTo(meter ? meter.wrapSink(sink) : sink);
    } catch (error) {
      failure = toUpstreamError(error);
    }
    await meter?.finish();
    if (meter?.endedBy) return this.endAtHoldLimit(served, meter, meter.endedBy, client);
    const usage = await purchase.billStream(call, served, this.order.quote.choices);
    this.recordOutputLength(failure);
    await meter?.recordRatio(getQuantity('output', usage) - (usage.reasoning ?? 0));
    // After a disconnect, the payer owes what was generated. After any other failure, the payer owes nothing unless
    // output was forwarded.
    const owes = response.usage() !== undefined || response.getDeliveredText() !== '' || Boolean(usage.reasoning);
    const owesAfterDisconnect = failure?.code === 'client_disconnected' && owes;
    if (!failure || owesAfterDisconnect || response.hasForwarded()) return failure;
    throw failure;
  }

  /**
   * Called when the hold is used up or has ended. Bills at most the output that the hold covers; the operator absorbs
   * what the provider generated beyond that. A completion whose hold is used up ends as if it had reached its output
   * limit.
   * @throws the failure if the hold has ended and nothing was forwarded
   */
  private async endAtHoldLimit(
    { response, endpoint }: EndpointResponse<CompletionStream>,
    meter: UsageMeter,
    failure: UpstreamError,
    client: CompletionSink,
  ): Promise<UpstreamError | undefined> {
    const { order, purchase } = this;
    await this.billTruncated(meter, failure, response);
    if (failure.code !== 'hold_used_up') {
      if (response.hasForwarded()) return failure;
      throw failure;
    }
    const identity = createCompletionIdentity(order, purchase.hold)(endpoint);
    await client.write(createLengthLimitEvents(response.protocol, identity, order.quote.choices));
    return undefined;
  }

  /** Bills the output that the hold covers. The operator absorbs what the provider generated beyond that. */
  private async billTruncated(meter: UsageMeter, { code }: UpstreamError, reported: ReportedUsage): Promise<void> {
    const { order, purchase } = this;
    const countText = this.services.tokenCounter.createRequiredCount(purchase.payerId);
    const estimateUsage = async (delivered: string): Promise<Usage> => ({
      input: await countInputTokens(order.body, countText),
      [delivered === '' ? 'reasoning' : 'output']: await meter.estimateGenerated(),
    });
    const result = toStreamResult(reported);
    const measured = await measureUsage({ estimateUsage }, result);
    const { output = 0, reasoning = 0 } = measured.usage;
    if (code === 'hold_used_up') await meter.extendToGenerated(output + reasoning);
    this.recordLength?.({ tokens: Math.ceil((output + reasoning) / order.quote.choices), isTruncated: true });
    const { coveredTokens } = meter;
    const { vendorId, reportedBill } = result;
    await billTruncatedResponse(purchase, { ...measured, coveredTokens, absorbed: code, vendorId, reportedBill });
  }

  private createMeter({ endpoint, maxOutputTokens, maxReasoningTokens }: MeteredCall): UsageMeter {
    const { order, purchase } = this;
    const { quote, lengths, getTokensPerSecond } = order;
    return new UsageMeter({
      purchase,
      quote,
      endpoint,
      lengths,
      tokensPerSecond: getTokensPerSecond(endpoint),
      maxReasoningTokens: getMaxReasoningTokens(endpoint, { maxReasoningTokens }),
      maxOutputTokens,
      latencyMs: getTypicalLatency(endpoint),
      countText: this.services.tokenCounter.createRequiredCount(purchase.payerId),
    });
  }

  /**
   * Whether a call may use more than is held at its start. Its provider must stop generating and billing when the
   * gateway disconnects, because the call is aborted if the hold cannot be extended.
   */
  private isExtensible({ onDisconnect }: Endpoint): boolean {
    const { amount, limitPrice = amount } = this.purchase.hold;
    return amount < limitPrice && onDisconnect === 'stops';
  }

  private recordOutputLength(failure?: UpstreamError): void {
    if (failure) return;
    const tokens = Math.ceil(getQuantity('output', this.purchase.usage) / this.order.quote.choices);
    this.recordLength?.({ tokens, isTruncated: false });
  }

  /** Sends the states of a search that was made before the call. */
  private async sendSearches(client: CompletionSink): Promise<void> {
    for (const search of this.order.searches ?? []) {
      await client.writeSearch?.({ ...search, state: 'searching' });
      await client.writeSearch?.(search);
    }
  }
}
