/** One call of the model: how an endpoint is asked for an answer to a chat, and a chat that one such answer is enough for. */
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
import { canReason } from '../../routing/endpoint-health.ts';
import { mapNotFoundError } from '../../routing/preferences.ts';
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
import { countInputTokens, countTokens, loadTokenizer } from '../chat/count-tokens.ts';
import { toUpstreamResponsesBody, usesNativeResponses } from '../responses/native-request.ts';
import { citationEvent, withCitations } from '../search/results.ts';
import { type ChatOrder, canExtendHold, usesGatewaySearch } from './quote-chat.ts';
import { StreamCollector } from './stream-collector.ts';
import { UsageMeter } from './usage-meter.ts';

export interface SingleCallOrder extends ChatOrder {
  /** What a search before the answer has found, and how it is reported. */
  readonly found?: readonly SearchResult[];
  readonly searches?: readonly SearchStatus[];
  /** What the upstream is to search for by itself, and what each search that it invoices costs. */
  readonly native?: NativeSearch;
  readonly searchFee?: Tariff;
}

/** A chat that one call of the model answers. */
export class SingleCallChat implements ChatExecutor {
  private readonly call: UpstreamCall<Completion | CompletionStream>;

  constructor(
    private readonly order: SingleCallOrder,
    private readonly purchase: Purchase,
    providers: ProviderRegistry,
  ) {
    const { body, native } = order;
    const ask = createUpstreamCall(order, purchase, providers, native);
    this.call = {
      make: async (endpoint) => {
        if (this.grows(endpoint)) {
          await loadTokenizer();
          return await ask(endpoint, { body, limit: outputLimit(order, purchase.hold.reach), stream: true });
        }
        if (purchase.sale.part !== undefined) await this.takeShare();
        return await ask(endpoint, { body, limit: outputLimit(order, purchase.hold.amount), stream: order.stream });
      },
      counted: (delivered) => estimateChatUsage(body, delivered),
    };
  }

  async whole(): Promise<CompletionDraft> {
    const { order, purchase, call } = this;
    const { found, searches = [] } = order;
    const served = await purchase.ask(call);
    const { answer } = served;
    if (answer.kind === 'stream') return this.collected({ ...served, answer });
    await purchase.billCall(call, toCallResult(answer));
    this.tookOutput();
    this.billSearches(answer, answer.searches?.invoiced);
    const body = found ? withCitations(answer.body, found) : answer.body;
    return { ...toCompletionSource(order.named.model, served), body, searches: answer.searches?.notes ?? searches };
  }

  /** Passes events on as they come. */
  async stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    const { purchase, call } = this;
    const served = (await purchase.ask(call)) as EndpointResponse<CompletionStream>;
    client.begin(toCompletionSource(this.order.named.model, served));
    return this.passOn(served, client);
  }

  /** As a client would: the answer is asked for as a stream where more can be held while it comes. */
  private async collected(served: EndpointResponse<CompletionStream>): Promise<CompletionDraft> {
    const { model } = this.order.named;
    const source = toCompletionSource(model, served);
    const collector = new StreamCollector(
      served.answer.language,
      createCompletionIdentity(this.order, this.purchase.hold)(served.endpoint),
    );
    const failure = await this.passOn(served, collector).catch(toUpstreamError);
    // An answer in one piece that broke off is none, but for a client that has gone: it owes what was made for it.
    if (failure && failure.code !== 'client_disconnected') throw this.purchase.brokenOff(failure);
    this.purchase.cutBy = failure;
    return { ...source, body: collector.body, searches: collector.searches };
  }

  private async passOn(
    served: EndpointResponse<CompletionStream>,
    client: CompletionSink,
  ): Promise<UpstreamError | undefined> {
    const { purchase, call } = this;
    const { answer } = served;
    const meter = this.meterOf(served);
    purchase.generating(served.endpoint);
    let failure: UpstreamError | undefined;
    const pass: SseEventSink = (events, search) =>
      search === undefined ? client.write(events) : client.searched?.(search);
    try {
      await this.sendSearches(served, client);
      await answer.relayTo(meter ? meter.through(pass) : pass);
    } catch (error) {
      failure = toUpstreamError(error);
    }
    await meter?.over();
    if (meter?.isUsedUp) return this.endOfMoney(served, meter, client);
    const usage = await purchase.billStream(call, served);
    this.tookOutput(failure);
    meter?.compare(getQuantity('output', usage) - (usage.reasoning ?? 0));
    this.billSearches(answer, answer.invoicedSearches?.());
    // A client that goes away owes what was generated for it; one that got nothing of a broken answer owes nothing.
    const owes = answer.usage() !== undefined || answer.deliveredText() !== '' || Boolean(usage.reasoning);
    const left = failure?.code === 'client_disconnected' && owes;
    if (!failure || left || answer.hasTold()) return failure;
    throw failure;
  }

  /** What could be paid for has been sent: it ends as an answer does that has reached its limit. */
  private async endOfMoney(
    { answer, endpoint }: EndpointResponse<CompletionStream>,
    meter: UsageMeter,
    client: CompletionSink,
  ): Promise<undefined> {
    const { order, purchase } = this;
    const identity = createCompletionIdentity(order, purchase.hold)(endpoint);
    await client.write(createLengthLimitEvents(answer.language, identity, order.quote.choices));
    const input = await countInputTokens(order.body);
    const usage = async () => ({ input, output: meter.charged });
    const made = { usage: undefined, delivered: () => '', vendorId: answer.vendorId() };
    await purchase.billCall({ counted: usage }, made);
  }

  private meterOf({ answer, endpoint }: EndpointResponse<CompletionStream>): UsageMeter | undefined {
    if (!this.grows(endpoint)) return undefined;
    const { order, purchase } = this;
    const { quote, lengths, tokensPerSecond } = order;
    const thinks = canReason(endpoint);
    const metered = { purchase, quote, endpoint, lengths, tokensPerSecond: tokensPerSecond(endpoint), thinks };
    return new UsageMeter(metered, answer);
  }

  /** Only what stops when we hang up may use more than is held when it begins. */
  private grows({ onDisconnect }: Endpoint): boolean {
    const { hold, sale } = this.purchase;
    const isWhole = sale.part === undefined || hold.amount >= sale.atMost;
    return !isWhole && onDisconnect === 'stops' && canExtendHold(this.order.plan);
  }

  /** Where the hold must do, one that was taken to grow takes its share of what there is before more is asked for. */
  private async takeShare(): Promise<void> {
    const { purchase } = this;
    const { amount, beside } = purchase.hold;
    const share = money.min(calculateFixedShare(money.add(amount, beside)), purchase.sale.atMost);
    if (amount < share) await purchase.grow({ minAmount: amount, targetAmount: share });
  }

  private tookOutput(failure?: UpstreamError): void {
    const { purchase, order } = this;
    if (!failure) order.lengths.took(order.named.model.id, purchase.payerId, getQuantity('output', purchase.usage));
  }

  /** What was searched for before the answer. */
  private async sendSearches({ endpoint }: EndpointResponse<CompletionStream>, client: CompletionSink): Promise<void> {
    const { order, purchase } = this;
    const { found = [], searches = [] } = order;
    for (const search of searches) {
      await client.searched?.({ ...search, state: 'searching' });
      await client.searched?.(search);
    }
    if (found.length > 0)
      await client.write(citationEvent(createCompletionIdentity(order, purchase.hold)(endpoint), found));
  }

  private billSearches(answer: Completion | CompletionStream, invoiced = 0): void {
    const { searchFee } = this.order;
    if (searchFee) this.purchase.billSearches(searchFee, invoiced, answer.vendorId());
  }
}

/** The caller's limit, as far as an amount affords it; undefined where that is all that the model can make. */
function outputLimit({ quote, named }: ChatOrder, amount: PicoUsd): number | undefined {
  const { maxOutput } = named.model;
  if (quote.part === undefined && quote.wanted !== undefined) return quote.wanted;
  const limit = Math.min(quote.wanted ?? maxOutput, countAffordableTokensPerChoice(amount, quote));
  return quote.wanted !== undefined || limit < maxOutput ? limit : undefined;
}

/** Calls one endpoint, in its best protocol. */
export type CallUpstream = (endpoint: Endpoint, asked: UpstreamCallParams) => Promise<Completion | CompletionStream>;

export interface UpstreamCallParams {
  readonly body: ChatBody;
  /** Tokens of output per choice at most; undefined for as many as the model makes. */
  readonly limit: number | undefined;
  readonly stream: boolean;
}

/** @param search what the upstream is to search for by itself */
export function createUpstreamCall(
  order: ChatOrder,
  { hold, signal }: Purchase,
  providers: ProviderRegistry,
  search?: NativeSearch,
): CallUpstream {
  const { named, reasoning, plan, responses } = order;
  const identity = createCompletionIdentity(order, hold);
  return (endpoint, { body, limit, stream }) => {
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + named.passedOn };
    const natively =
      responses !== undefined && !usesGatewaySearch(plan) && usesNativeResponses(endpoint, responses, limit);
    const language = natively ? 'responses' : 'chat';
    const ask = providers.of(hold, upstream, language);
    const answer = ask({
      language,
      speaks,
      body: natively
        ? toUpstreamResponsesBody({ ...responses, body: { ...responses.body, stream } }, target, limit, reasoning)
        : toUpstreamBody({ ...body, stream }, target, limit, reasoning),
      stream,
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      signal,
    });
    return mapNotFoundError(named, endpoint, answer);
  };
}

/** The identity of an answer, from any endpoint. */
export function createCompletionIdentity(
  { named, created }: ChatOrder,
  { holdId }: Hold,
): (endpoint: Endpoint) => CompletionIdentity {
  return ({ provider }) => ({ id: `gen-${holdId}`, model: named.model.id, provider, created });
}

/** The usage that no upstream reported, as an estimate. */
export async function estimateChatUsage(body: ChatBody, delivered: string): Promise<Usage> {
  const [input, output] = await Promise.all([countInputTokens(body), countTokens(delivered)]);
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}
