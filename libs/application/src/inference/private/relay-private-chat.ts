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
const MOMENT_MS = 500;
/** Payers whose word is not taken any more, of each gateway. */
const MOST_REMEMBERED = 100_000;

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
  readonly length: number | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Takes ciphertext as it comes. */
export interface CiphertextWriter extends StreamWriter {
  begin(head: EncryptedResponseHead): void;
  /** Returns a promise when there is no room for more until that resolves. */
  write(piece: Uint8Array): Promise<void> | undefined;
  /** Hears how the enclave has ended an answer, before it ends. */
  trailer(usage: string): void;
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
  private readonly misled = new LRUCache<string, true>({ max: MOST_REMEMBERED });

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly paying: BillingEngine,
    private readonly providers: ProviderRegistry,
    private readonly lengths: OutputLengthStats,
  ) {}

  async execute({ payer, request, client }: RelayPrivateChat): Promise<void> {
    const isMetered = request.stream && !this.misled.has(payer.id);
    const catalogue = await this.catalogues.servedTo(payer);
    const order = quotePrivateChat({ ...request, isMetered }, payer, catalogue, this.lengths);
    let fault: unknown;
    const serve = async (purchase: Purchase) => {
      const usage = new CiphertextUsageLimits(order.terms);
      const meter = new CiphertextMeter(purchase, usage, order);
      try {
        return await this.relay({ order, request, purchase, usage, meter }, client);
      } finally {
        fault = meter.fault;
      }
    };
    try {
      await this.paying.stream(payer, order.sale, serve, client);
    } catch (error) {
      throw fault && !(error instanceof EncryptedErrorResponse) ? fault : error;
    }
  }

  /** @returns the failure that broke an answer off of which the client has had a part */
  private async relay(
    { order, request, purchase, usage, meter }: Relaying,
    client: CiphertextWriter,
  ): Promise<UpstreamError | undefined> {
    const call: UpstreamCall<EncryptedResponse> = {
      isOnce: true,
      make: ({ upstream, enclave = '' }: Endpoint) => {
        const ask = this.providers.of(purchase.hold, upstream, 'privateChat');
        const { encapsulatedKey, stream } = request;
        return ask({ enclave, encapsulatedKey, stream, body: meter.sent(request.body), signal: purchase.signal });
      },
      counted: async () => usage.judge(undefined).usage,
    };
    const asked = await purchase.ask(call).catch(toUpstreamError);
    if (asked instanceof UpstreamError) {
      if (hasLeft(asked) && asked.delivered !== undefined) return asked;
      throw asked;
    }
    const { answer, endpoint } = asked;
    // What comes whole has been made: to stop it would save nothing.
    if (isStream(answer)) purchase.generating(endpoint, MOMENT_MS);
    else if (request.stream) this.misled.set(purchase.payerId, true);
    const failure = await passedOn(answer, meter, client).then(() => undefined, toUpstreamError);
    if (failure) purchase.cutShort(failure);
    const judged = usage.judge(answer.usage());
    if (judged.doubt && !failure) purchase.doubt(`the enclave of ${order.sale.model.id} ${judged.doubt}`);
    const { usage: used, estimated } = await meter.afforded(judged);
    if (estimated && !judged.estimated)
      purchase.doubt(`${order.sale.model.id}: more was reported than there was money for`);
    const made = { usage: estimated ? undefined : used, delivered: () => '', vendorId: answer.vendorId() };
    await purchase.billCall({ counted: async () => used }, made);
    if (failure && !client.started && !hasLeft(failure)) throw failure;
    if (!failure) this.lengths.took(order.sale.model.id, purchase.payerId, getQuantity('output', purchase.usage));
    const trailer = answer.trailer();
    if (trailer !== undefined) client.trailer(trailer);
    return failure;
  }
}

interface Relaying {
  readonly order: PrivateOrder;
  readonly request: PrivateChatRequest;
  readonly purchase: Purchase;
  readonly usage: CiphertextUsageLimits;
  readonly meter: CiphertextMeter;
}

/** @throws UpstreamError when it breaks off, or there is no money for more of it */
async function passedOn(answer: EncryptedResponse, meter: CiphertextMeter, client: CiphertextWriter): Promise<void> {
  const { head, pieces } = answer;
  const inEvents = isStream(answer);
  for await (const piece of pieces) {
    client.begin(head);
    await meter.received(piece, inEvents);
    await client.write(piece.bytes);
  }
  client.begin(head);
}

function isStream({ head }: EncryptedResponse): boolean {
  return head.mediaType === 'text/event-stream';
}

/** Who leaves owes what was begun for him, whether he has had any of it or not. */
function hasLeft({ code }: UpstreamError): boolean {
  return code === 'client_disconnected';
}
