/**
 * Executes a chat whose provider may search the web itself. The provider may pause the turn of the model while it
 * searches. Further calls then continue the turn, and the client gets one completion.
 */
import type { Endpoint } from '#catalogue';
import { getQuantity, type Tariff, type Usage } from '#domain';
import type { Purchase } from '../../billing/purchase.ts';
import { omitSearchCost } from '../../billing/reported-bill.ts';
import type { EndpointResponse, UpstreamCall } from '../../billing/upstream-call.ts';
import { createDisconnectError, toUpstreamError, type UpstreamError } from '../../errors.ts';
import {
  type Completion,
  type CompletionStream,
  type PausedResponse,
  type SseEventSink,
  toCallResult,
} from '../../providers/provider.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import {
  type ChatExecutor,
  type CompletionDraft,
  type CompletionWriter,
  createChunkEvent,
  toCompletionSource,
} from '../chat/completion-writer.ts';
import type { InferenceServices } from '../chat/inference-services.ts';
import { extendToFixedShare, getOutputLimit } from './output-limit.ts';
import type { ChatOrder } from './quote-chat.ts';
import { type ContinuedCall, TurnContinuation } from './turn-continuation.ts';
import { createCompletionIdentity, createUpstreamCall, createUsageEstimate } from './upstream-call.ts';

export interface NativeSearchOrder extends ChatOrder {
  /** The searches that the provider may make; undefined if the hold pays for none. */
  readonly native?: NativeSearch;
  /** The fee for each search that the provider invoices. */
  readonly searchFee: Tariff;
}

export class NativeSearchChat implements ChatExecutor {
  private readonly call: UpstreamCall<Completion | CompletionStream>;
  private readonly continuation: TurnContinuation | undefined;
  /** The current call, if it continues the turn. */
  private continuedCall: ContinuedCall | undefined;
  /** The text of the earlier calls, which is part of the input of the current one. */
  private deliveredText = '';
  /** Whether the provider may invoice anything, so that the payer owes it after a disconnect. */
  private hasOutput = false;
  private hasForwarded = false;

  constructor(
    private readonly order: NativeSearchOrder,
    private readonly purchase: Purchase,
    services: InferenceServices,
  ) {
    const { body, native, searchFee, stream } = order;
    const estimateUsage = createUsageEstimate(purchase, services.tokenCounter);
    const callUpstream = createUpstreamCall(order, purchase, services.providers);
    this.continuation = native && new TurnContinuation({ ...order, native, searchFee }, purchase);
    this.call = {
      send: async (endpoint) => {
        if (this.continuedCall) return callUpstream(endpoint, { body, stream, ...this.continuedCall });
        await extendToFixedShare(purchase);
        const limit = getOutputLimit(order, purchase.hold.amount);
        return callUpstream(endpoint, { body, limit, stream, search: native });
      },
      estimateUsage: (delivered) => estimateUsage(this.appendDelivered(body), delivered),
    };
  }

  complete(): Promise<CompletionDraft> {
    return this.measureLength(async () => {
      const { order, purchase, call } = this;
      for (let served = await purchase.call(call); ; ) {
        const response = served.response as Completion;
        const invoiced = response.searches?.invoiced ?? 0;
        const result = toCallResult(response);
        const reportedBill = omitSearchCost(result.reportedBill ?? {}, order.searchFee, invoiced);
        const usage = await purchase.billCall(call, { ...result, reportedBill });
        this.billSearches(response, invoiced);
        const { pausedResponse } = response;
        if (!pausedResponse || !(await this.prepareCall(served.endpoint, { pausedResponse, usage, response })))
          return {
            ...toCompletionSource(order.resolved.model, served),
            body: response.body,
            searches: response.searches?.statuses ?? [],
          };
        served = await purchase.callSameEndpoint(call, served.endpoint);
      }
    });
  }

  async stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    try {
      await this.measureLength(() => this.forwardTurn(client));
      return undefined;
    } catch (error) {
      // After a disconnect, the payer owes what was generated. After any other failure, the payer owes nothing unless
      // output was forwarded.
      const failure = toUpstreamError(error);
      if (this.hasForwarded || (failure.code === 'client_disconnected' && this.hasOutput)) return failure;
      throw failure;
    }
  }

  /** Forwards the responses of all calls for the turn. @throws UpstreamError if one of them is interrupted */
  private async forwardTurn(client: CompletionWriter): Promise<void> {
    const { order, purchase, call } = this;
    const first = (await purchase.call(call)) as EndpointResponse<CompletionStream>;
    client.begin(toCompletionSource(order.resolved.model, first));
    for (let served = first; ; ) {
      const { response, endpoint } = served;
      const usage = await this.forwardResponse(served, client);
      const pausedResponse = response.getPausedResponse?.();
      if (!pausedResponse) return;
      if (!client.isListening) throw createDisconnectError();
      if (!(await this.prepareCall(endpoint, { pausedResponse, usage, response }))) {
        const identity = createCompletionIdentity(order, purchase.hold)(endpoint);
        const end = { delta: {}, finish_reason: 'length', native_finish_reason: 'pause_turn' };
        await client.write(createChunkEvent(identity, end));
        return;
      }
      served = (await purchase.callSameEndpoint(call, endpoint)) as EndpointResponse<CompletionStream>;
    }
  }

  /** Forwards and bills the response of one call. @throws UpstreamError if it is interrupted; it is billed then too */
  private async forwardResponse(served: EndpointResponse<CompletionStream>, client: CompletionWriter): Promise<Usage> {
    const { response } = served;
    const sink: SseEventSink = (events, search) =>
      search === undefined ? client.write(events) : client.writeSearch?.(search);
    let failure: UpstreamError | undefined;
    try {
      await response.pipeTo(sink);
    } catch (error) {
      failure = toUpstreamError(error);
    }
    const { searchFee, quote } = this.order;
    const invoiced = response.countInvoicedSearches?.() ?? 0;
    const reportedBill = () => omitSearchCost(response.reportedBill?.() ?? {}, searchFee, invoiced);
    const billed = { ...served, response: { ...response, reportedBill } };
    const usage = await this.purchase.billStream(this.call, billed, quote.choices);
    this.billSearches(response, invoiced);
    this.hasOutput ||= response.usage() !== undefined || response.getDeliveredText() !== '' || Boolean(usage.reasoning);
    this.hasForwarded ||= response.hasForwarded();
    if (failure) throw failure;
    return usage;
  }

  /** Prepares the call that continues a turn. @returns whether the turn may be continued */
  private async prepareCall(
    endpoint: Endpoint,
    paused: {
      readonly pausedResponse: PausedResponse;
      readonly usage: Usage;
      readonly response: Pick<Completion, 'getDeliveredText'>;
    },
  ): Promise<boolean> {
    this.deliveredText += paused.response.getDeliveredText();
    this.continuedCall = await this.continuation?.createCall(endpoint, paused.pausedResponse, paused.usage);
    return this.continuedCall !== undefined;
  }

  private appendDelivered(body: ChatBody): ChatBody {
    const { deliveredText: content } = this;
    return content === '' ? body : { ...body, messages: [...body.messages, { role: 'assistant', content }] };
  }

  private billSearches(completion: Completion | CompletionStream, invoiced: number): void {
    this.purchase.billSearches(this.order.searchFee, invoiced, { vendorId: completion.vendorId() });
  }

  /** Serves a completion and records its length, unless it fails. */
  private async measureLength<T>(serve: () => Promise<T>): Promise<T> {
    const { order, purchase } = this;
    const recordEnd = order.lengths.start(order.resolved.model, purchase.payerId);
    try {
      const result = await serve();
      const tokens = Math.ceil(getQuantity('output', purchase.usage) / order.quote.choices);
      recordEnd({ tokens, isTruncated: false });
      return result;
    } finally {
      recordEnd();
    }
  }
}
