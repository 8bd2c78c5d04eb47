/** One private chat: quote → hold → pass on → settle. Nothing of it can be read here; what it uses is bounded by its bytes. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { LRUCache } from 'lru-cache';
import type { Endpoint } from '#catalogue';
import { getQuantity } from '#domain';
import { BillingEngine, type StreamWriter } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { CatalogueService } from '../../catalogue-service.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import {
  EncryptedErrorResponse,
  type EncryptedResponse,
  type EncryptedResponseHead,
} from '../../providers/private-calls.ts';
import { ProviderRegistry } from '../../providers/provider.ts';
import { OutputLengthStats } from '../chat-execution/output-length-stats.ts';
import { CiphertextMeter } from './ciphertext-meter.ts';
import { CiphertextUsageLimits } from './ciphertext-usage.ts';
import { type PrivateOrder, quotePrivateChat } from './private-order.ts';

/**
 * A client that leaves may have had the answer and not its report, or not have read what had come: so long it is read on, for
 * what is under way to be counted, before the enclave is stopped.
 */
const ABANDON_DELAY_MS = 500;
/** Payers whose word is not taken any more, of each gateway. */
const MAX_MISLED_PAYERS = 100_000;

export interface PrivateChatRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  /** Such as `private/gpt-oss-120b`: what it names in its ciphertext is not known. */
  readonly model: string;
  readonly encapsulatedKey: string;
  /** The client says that the answer comes as a stream; what it asks for in its ciphertext is not known. */
  readonly stream: boolean;
  /** Bytes of the body, where its sender said so beforehand. */
  readonly contentLength: number | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Takes ciphertext as it comes. */
export interface CiphertextWriter extends StreamWriter {
  begin(head: EncryptedResponseHead): void;
  /** Returns a promise when there is no room for more until that resolves. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Hears how the enclave has ended an answer, before it ends. */
  setTrailer(usage: string): void;
}

/** @throws EncryptedErrorResponse when the enclave has refused it in words for the client: nothing is charged then */
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
  /** They said that an answer would be a stream, and asked for one in one piece, which cannot be metered. */
  private readonly misledPayers = new LRUCache<string, true>({ max: MAX_MISLED_PAYERS });

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly billing: BillingEngine,
    private readonly providers: ProviderRegistry,
    private readonly lengths: OutputLengthStats,
  ) {}

  async execute({ payer, request, client }: RelayPrivateChat): Promise<void> {
    const isMetered = request.stream && !this.misledPayers.has(payer.id);
    const catalogue = await this.catalogues.loadForPayer(payer);
    const order = quotePrivateChat({ ...request, isMetered }, payer, catalogue, this.lengths);
    let requestError: unknown;
    const serve = async (purchase: Purchase) => {
      const usage = new CiphertextUsageLimits(order.overhead);
      const meter = new CiphertextMeter(purchase, usage, order);
      try {
        return await this.relay({ order, request, purchase, usage, meter }, client);
      } finally {
        requestError = meter.requestError;
      }
    };
    try {
      await this.billing.sellStream(payer, order.billingOrder, serve, client);
    } catch (error) {
      throw requestError && !(error instanceof EncryptedErrorResponse) ? requestError : error;
    }
  }

  /** @returns the failure that broke an answer off of which the client has had a part */
  private async relay(
    { order, request, purchase, usage, meter }: RelayContext,
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
    const { response, endpoint } = outcome;
    // What comes whole has been made: to stop it would save nothing.
    if (isEventStream(response)) purchase.markStreaming(endpoint, ABANDON_DELAY_MS);
    else if (request.stream) this.misledPayers.set(purchase.payerId, true);
    const failure = await forwardChunks(response, meter, client).then(() => undefined, toUpstreamError);
    if (failure) purchase.abort(failure);
    const clamped = usage.clamp(response.usage());
    if (clamped.problem && !failure)
      purchase.reportImplausible(`the enclave of ${order.billingOrder.model.id} ${clamped.problem}`);
    const { usage: used, estimated } = await meter.limitToHold(clamped);
    if (estimated && !clamped.estimated)
      purchase.reportImplausible(`${order.billingOrder.model.id}: more was reported than there was money for`);
    const callResult = {
      usage: estimated ? undefined : used,
      getDeliveredText: () => '',
      vendorId: response.vendorId(),
    };
    await purchase.billCall({ estimateUsage: async () => used }, callResult);
    if (failure && !client.hasStarted && !hasDisconnected(failure)) throw failure;
    if (!failure)
      this.lengths.recordLength(order.billingOrder.model.id, purchase.payerId, getQuantity('output', purchase.usage));
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
}

/** @throws UpstreamError when it breaks off, or there is no money for more of it */
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
    await client.write(chunk.bytes);
  }
  client.begin(head);
}

function isEventStream({ head }: EncryptedResponse): boolean {
  return head.mediaType === 'text/event-stream';
}

/** Who leaves owes what was begun for him, whether he has had any of it or not. */
function hasDisconnected({ code }: UpstreamError): boolean {
  return code === 'client_disconnected';
}
