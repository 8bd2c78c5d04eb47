/** Sells one private chat: quote → hold → relay → settle. The chat is encrypted; only its size bounds its usage. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { LRUCache } from 'lru-cache';
import type { Endpoint } from '#catalogue';
import { getQuantity } from '#domain';
import { limitEntries } from '#kernel';
import { BillingEngine, type StreamWriter } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { billTruncatedResponse } from '../../billing/truncated-response.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import {
  EncryptedErrorResponse,
  type EncryptedResponse,
  type EncryptedResponseHead,
} from '../../providers/private-calls.ts';
import { ProviderRegistry } from '../../providers/provider.ts';
import { type OutputLength, OutputLengthStats } from '../chat-execution/output-length-stats.ts';
import { CiphertextMeter } from './ciphertext-meter.ts';
import { CiphertextUsageLimits } from './ciphertext-usage.ts';
import { INITIAL_INPUT_BYTES, PrivateChatQuoter, type PrivateOrder } from './private-order.ts';
import { readStart } from './read-start.ts';

/**
 * How long a stream is still read after its client has disconnected. Then the enclave is stopped. Data in transit,
 * including the usage report, can arrive and be counted in this time.
 */
const ABANDON_DELAY_MS = 500;
/** Maximum number of payers per gateway process whose announcement of a stream is not trusted. */
const MAX_MISLED_PAYERS = 100_000;

export interface PrivateChatRequest {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  /** A model id such as `private/gpt-oss-120b`. The model in the ciphertext is unknown. */
  readonly model: string;
  readonly encapsulatedKey: string;
  /** The client announces a streamed response. What it requests in the ciphertext is unknown. */
  readonly stream: boolean;
  /** Length of the body in bytes; undefined if the client did not send it. */
  readonly contentLength: number | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Writes the ciphertext of a response to the client. */
export interface CiphertextWriter extends StreamWriter {
  begin(head: EncryptedResponseHead): void;
  /** Returns a promise if the next chunk must wait until it resolves. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Sets the trailer with the enclave's usage report. Called before the end. */
  setTrailer(usage: string): void;
}

/**
 * Relays an encrypted chat to its enclave and the encrypted response to the client.
 * @throws EncryptedErrorResponse if the enclave rejects the chat; nothing is charged
 */
export class RelayPrivateChat extends Command<void> {
  constructor(
    readonly payer: Payer,
    readonly request: PrivateChatRequest,
    readonly client: CiphertextWriter,
  ) {
    super();
  }
}

@CommandHandler(RelayPrivateChat)
export class RelayPrivateChatHandler implements ICommandHandler<RelayPrivateChat> {
  /** Payers who announced a stream but requested a non-streaming response, which cannot be metered. */
  private readonly misledPayers = new LRUCache<string, true>(limitEntries(MAX_MISLED_PAYERS));

  constructor(
    private readonly quoter: PrivateChatQuoter,
    private readonly billing: BillingEngine,
    private readonly providers: ProviderRegistry,
    private readonly lengths: OutputLengthStats,
  ) {}

  async execute({ payer, request, client }: RelayPrivateChat): Promise<void> {
    const stream = request.stream && !this.misledPayers.has(payer.id);
    // The protocol sends chunked bodies. The length of a short one is known before money is held for it.
    const { length: contentLength = request.contentLength, body } = await readStart(request.body, INITIAL_INPUT_BYTES);
    const order = await this.quoter.quote({ ...request, stream, contentLength }, payer);
    let requestError: unknown;
    const serve = async (purchase: Purchase) => {
      const usage = new CiphertextUsageLimits(order.overhead);
      const meter = new CiphertextMeter(purchase, usage, order);
      const recordLength = this.lengths.start(order.model, purchase.payerId);
      try {
        return await this.relay({ order, request: { ...request, body }, purchase, usage, meter, recordLength }, client);
      } finally {
        recordLength();
        requestError = meter.requestError;
      }
    };
    try {
      await this.billing.sellStream(payer, order.billingOrder, serve, client);
    } catch (error) {
      throw requestError && !(error instanceof EncryptedErrorResponse) ? requestError : error;
    }
  }

  /**
   * @returns the failure that interrupted the response, if the payer owes the part that was generated; undefined if the
   *   response is complete
   * @throws UpstreamError after any other failure
   */
  private async relay(
    { order, request, purchase, usage, meter, recordLength }: RelayContext,
    client: CiphertextWriter,
  ): Promise<UpstreamError | undefined> {
    const call: UpstreamCall<EncryptedResponse> = {
      isSingleUse: true,
      send: ({ upstream, enclave = '' }: Endpoint) => {
        const callEnclave = this.providers.get(purchase.hold, upstream, 'privateChat');
        const { encapsulatedKey, stream } = request;
        return callEnclave({
          enclave,
          encapsulatedKey,
          stream,
          body: meter.meterRequest(request.body),
          signal: purchase.signal,
        });
      },
      estimateUsage: async () => usage.clamp(undefined).usage,
    };
    const outcome = await purchase.call(call).catch(toUpstreamError);
    if (outcome instanceof UpstreamError) {
      if (hasDisconnected(outcome) && outcome.deliveredText !== undefined) return outcome;
      throw outcome;
    }
    const { response, endpoint, firstByteAtMs } = outcome;
    // A non-streaming response is already generated when it arrives, so stopping it would save nothing.
    if (isEventStream(response)) purchase.markStreaming(endpoint, ABANDON_DELAY_MS);
    else if (request.stream) this.misledPayers.set(purchase.payerId, true);
    const forwarding = forwardChunks(response, meter, client);
    const forwarded = isEventStream(response) ? meter.monitor(forwarding) : forwarding;
    const failure = await forwarded.then(() => undefined, toUpstreamError);
    const durationMs = purchase.runtime.now() - firstByteAtMs;
    if (failure) purchase.abort(failure);
    const clamped = usage.clamp(response.usage());
    if (clamped.problem && !failure) purchase.reportProblem(`the enclave of ${order.model.id} ${clamped.problem}`);
    const used = meter.addUnread(clamped);
    const coveredTokens = await meter.countCovered(used);
    const isUncovered = getQuantity('output', used) > coveredTokens;
    if (isUncovered && !clamped.estimated)
      purchase.reportProblem(`${order.model.id}: the reported usage exceeded the available money`);
    await billTruncatedResponse(purchase, {
      usage: used,
      estimated: clamped.estimated || isUncovered,
      coveredTokens,
      absorbed: failure?.code === 'hold_ended' ? failure.code : 'hold_used_up',
      vendorId: response.vendorId(),
    });
    if (failure && !client.hasStarted && !hasDisconnected(failure)) throw failure;
    const output = getQuantity('output', used);
    const isTruncated = failure?.code === 'hold_used_up';
    if (!failure || isTruncated) recordLength({ tokens: output, isTruncated });
    if (!failure && isEventStream(response) && !clamped.estimated && meter.isSpeedNew)
      purchase.recordDelivery(endpoint, output, durationMs);
    const trailer = response.getTrailer();
    if (trailer !== undefined) client.setTrailer(trailer);
    return failure;
  }
}

interface RelayContext {
  readonly order: PrivateOrder;
  readonly request: PrivateChatRequest;
  readonly purchase: Purchase;
  readonly usage: CiphertextUsageLimits;
  readonly meter: CiphertextMeter;
  readonly recordLength: (length: OutputLength) => void;
}

/** @throws UpstreamError if the response is interrupted or the hold cannot be extended */
async function forwardChunks(
  response: EncryptedResponse,
  meter: CiphertextMeter,
  client: CiphertextWriter,
): Promise<void> {
  const { head, chunks } = response;
  const isSse = isEventStream(response);
  for await (const chunk of chunks) {
    client.begin(head);
    await meter.meterChunk(chunk, isSse);
    const whenDrained = client.write(chunk.bytes);
    if (whenDrained) meter.markFull(whenDrained);
    await whenDrained;
  }
  client.begin(head);
}

function isEventStream({ head }: EncryptedResponse): boolean {
  return head.mediaType === 'text/event-stream';
}

/** After a disconnect, the payer owes what was generated, even if the client received nothing. */
function hasDisconnected({ code }: UpstreamError): boolean {
  return code === 'client_disconnected';
}
