/** One call of the model: how an endpoint is asked for an answer to a chat, and a chat that one such answer is enough for. */
import type { Endpoint } from '#catalogue';
import { getQuantity, type Tariff, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Hold } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { EndpointAnswer, UpstreamCall } from '../../billing/upstream-call.ts';
import { asFailure, type UpstreamFailure } from '../../errors.ts';
import {
  type AnswerIdentity,
  type EventReceiver,
  madeOf,
  type Providers,
  type StreamedAnswer,
  type WholeAnswer,
} from '../../providers/provider.ts';
import type { NativeSearch, SearchNote, SearchResult } from '../../providers/web-search.ts';
import { mayThink } from '../../routing/endpoint-health.ts';
import { answerOfAsked } from '../../routing/preferences.ts';
import { type ChatBody, upstreamBody } from '../chat/chat-body.ts';
import { affordedOutput, shareOfFixed } from '../chat/chat-quote.ts';
import {
  type AnswerClient,
  type Answering,
  type AnswerReceiver,
  lengthEvents,
  sourceOf,
  type WholeDraft,
} from '../chat/completion-writer.ts';
import { countInputTokens, countTokens, loadTokenizer } from '../chat/count-tokens.ts';
import { isAskedNatively, responsesBody } from '../responses/native-request.ts';
import { citationEvent, withCitations } from '../search/results.ts';
import { type ChatOrder, isOurs, mayGrow } from './quote-chat.ts';
import { Collector } from './stream-collector.ts';
import { Meter } from './usage-meter.ts';

export interface OneCallOrder extends ChatOrder {
  /** What a search before the answer has found, and how it is reported. */
  readonly found?: readonly SearchResult[];
  readonly searches?: readonly SearchNote[];
  /** What the upstream is to search for by itself, and what each search that it invoices costs. */
  readonly native?: NativeSearch;
  readonly searchFee?: Tariff;
}

/** A chat that one call of the model answers. */
export class OneCall implements Answering {
  private readonly call: UpstreamCall<WholeAnswer | StreamedAnswer>;

  constructor(
    private readonly order: OneCallOrder,
    private readonly purchase: Purchase,
    providers: Providers,
  ) {
    const { body, native } = order;
    const ask = upstreamCall(order, purchase, providers, native);
    this.call = {
      make: async (endpoint) => {
        if (this.grows(endpoint)) {
          await loadTokenizer();
          return await ask(endpoint, { body, limit: outputLimit(order, purchase.hold.reach), stream: true });
        }
        if (purchase.sale.part !== undefined) await this.takeShare();
        return await ask(endpoint, { body, limit: outputLimit(order, purchase.hold.amount), stream: order.stream });
      },
      counted: (delivered) => counted(body, delivered),
    };
  }

  async whole(): Promise<WholeDraft> {
    const { order, purchase, call } = this;
    const { found, searches = [] } = order;
    const served = await purchase.ask(call);
    const { answer } = served;
    if (answer.kind === 'stream') return this.collected({ ...served, answer });
    await purchase.billCall(call, madeOf(answer));
    this.tookOutput();
    this.billSearches(answer, answer.searches?.invoiced);
    const body = found ? withCitations(answer.body, found) : answer.body;
    return { ...sourceOf(order.named.model, served), body, searches: answer.searches?.notes ?? searches };
  }

  /** Passes events on as they come. */
  async stream(client: AnswerClient): Promise<UpstreamFailure | undefined> {
    const { purchase, call } = this;
    const served = (await purchase.ask(call)) as EndpointAnswer<StreamedAnswer>;
    client.begin(sourceOf(this.order.named.model, served));
    return this.passOn(served, client);
  }

  /** As a client would: the answer is asked for as a stream where more can be held while it comes. */
  private async collected(served: EndpointAnswer<StreamedAnswer>): Promise<WholeDraft> {
    const { model } = this.order.named;
    const source = sourceOf(model, served);
    const collector = new Collector(
      served.answer.language,
      identityOf(this.order, this.purchase.hold)(served.endpoint),
    );
    const failure = await this.passOn(served, collector).catch(asFailure);
    // An answer in one piece that broke off is none, but for a client that has gone: it owes what was made for it.
    if (failure && failure.code !== 'client_disconnected') throw this.purchase.brokenOff(failure);
    this.purchase.cutBy = failure;
    return { ...source, body: collector.body, searches: collector.searches };
  }

  private async passOn(
    served: EndpointAnswer<StreamedAnswer>,
    client: AnswerReceiver,
  ): Promise<UpstreamFailure | undefined> {
    const { purchase, call } = this;
    const { answer } = served;
    const meter = this.meterOf(served);
    purchase.generating(served.endpoint);
    let failure: UpstreamFailure | undefined;
    const pass: EventReceiver = (events, search) =>
      search === undefined ? client.write(events) : client.searched?.(search);
    try {
      await this.sendSearches(served, client);
      await answer.relayTo(meter ? meter.through(pass) : pass);
    } catch (error) {
      failure = asFailure(error);
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
    { answer, endpoint }: EndpointAnswer<StreamedAnswer>,
    meter: Meter,
    client: AnswerReceiver,
  ): Promise<undefined> {
    const { order, purchase } = this;
    const identity = identityOf(order, purchase.hold)(endpoint);
    await client.write(lengthEvents(answer.language, identity, order.quote.choices));
    const input = await countInputTokens(order.body);
    const usage = async () => ({ input, output: meter.charged });
    const made = { usage: undefined, delivered: () => '', vendorId: answer.vendorId() };
    await purchase.billCall({ counted: usage }, made);
  }

  private meterOf({ answer, endpoint }: EndpointAnswer<StreamedAnswer>): Meter | undefined {
    if (!this.grows(endpoint)) return undefined;
    const { order, purchase } = this;
    const { quote, lengths, tokensPerSecond } = order;
    const thinks = mayThink(endpoint);
    const metered = { purchase, quote, endpoint, lengths, tokensPerSecond: tokensPerSecond(endpoint), thinks };
    return new Meter(metered, answer);
  }

  /** Only what stops when we hang up may use more than is held when it begins. */
  private grows({ onDisconnect }: Endpoint): boolean {
    const { hold, sale } = this.purchase;
    const isWhole = sale.part === undefined || hold.amount >= sale.atMost;
    return !isWhole && onDisconnect === 'stops' && mayGrow(this.order.plan);
  }

  /** Where the hold must do, one that was taken to grow takes its share of what there is before more is asked for. */
  private async takeShare(): Promise<void> {
    const { purchase } = this;
    const { amount, beside } = purchase.hold;
    const share = money.min(shareOfFixed(money.add(amount, beside)), purchase.sale.atMost);
    if (amount < share) await purchase.grow({ atLeast: amount, to: share });
  }

  private tookOutput(failure?: UpstreamFailure): void {
    const { purchase, order } = this;
    if (!failure) order.lengths.took(order.named.model.id, purchase.payerId, getQuantity('output', purchase.usage));
  }

  /** What was searched for before the answer. */
  private async sendSearches({ endpoint }: EndpointAnswer<StreamedAnswer>, client: AnswerReceiver): Promise<void> {
    const { order, purchase } = this;
    const { found = [], searches = [] } = order;
    for (const search of searches) {
      await client.searched?.({ ...search, state: 'searching' });
      await client.searched?.(search);
    }
    if (found.length > 0) await client.write(citationEvent(identityOf(order, purchase.hold)(endpoint), found));
  }

  private billSearches(answer: WholeAnswer | StreamedAnswer, invoiced = 0): void {
    const { searchFee } = this.order;
    if (searchFee) this.purchase.billSearches(searchFee, invoiced, answer.vendorId());
  }
}

/** The caller's limit, as far as an amount affords it; undefined where that is all that the model can make. */
function outputLimit({ quote, named }: ChatOrder, amount: PicoUsd): number | undefined {
  const { maxOutput } = named.model;
  if (quote.part === undefined && quote.wanted !== undefined) return quote.wanted;
  const limit = Math.min(quote.wanted ?? maxOutput, affordedOutput(amount, quote));
  return quote.wanted !== undefined || limit < maxOutput ? limit : undefined;
}

/** Calls one endpoint, in its best protocol. */
export type AskUpstream = (endpoint: Endpoint, asked: AskedOnce) => Promise<WholeAnswer | StreamedAnswer>;

export interface AskedOnce {
  readonly body: ChatBody;
  /** Tokens of output per choice at most; undefined for as many as the model makes. */
  readonly limit: number | undefined;
  readonly stream: boolean;
}

/** @param search what the upstream is to search for by itself */
export function upstreamCall(
  order: ChatOrder,
  { hold, signal }: Purchase,
  providers: Providers,
  search?: NativeSearch,
): AskUpstream {
  const { named, reasoning, plan, responses } = order;
  const identity = identityOf(order, hold);
  return (endpoint, { body, limit, stream }) => {
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + named.passedOn };
    const natively = responses !== undefined && !isOurs(plan) && isAskedNatively(endpoint, responses, limit);
    const language = natively ? 'responses' : 'chat';
    const ask = providers.of(hold, upstream, language);
    const answer = ask({
      language,
      speaks,
      body: natively
        ? responsesBody({ ...responses, body: { ...responses.body, stream } }, target, limit, reasoning)
        : upstreamBody({ ...body, stream }, target, limit, reasoning),
      stream,
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      signal,
    });
    return answerOfAsked(named, endpoint, answer);
  };
}

/** The identity of an answer, from any endpoint. */
export function identityOf({ named, created }: ChatOrder, { holdId }: Hold): (endpoint: Endpoint) => AnswerIdentity {
  return ({ provider }) => ({ id: `gen-${holdId}`, model: named.model.id, provider, created });
}

/** The usage that no upstream reported, as an estimate. */
export async function counted(body: ChatBody, delivered: string): Promise<Usage> {
  const [input, output] = await Promise.all([countInputTokens(body), countTokens(delivered)]);
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}
