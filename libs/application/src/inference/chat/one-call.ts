/** One call of the model: how an endpoint is asked for an answer to a chat, and a chat that one such answer is enough for. */
import type { Endpoint } from '#catalogue';
import type { Tariff, Usage } from '#domain';
import { asFailure, type UpstreamFailure } from '../../failures.ts';
import type { Hold } from '../../paying/payer.ts';
import type { EndpointAnswer, Purchase, UpstreamCall } from '../../paying/purchase.ts';
import { answerOfVariant } from '../../routing/preferences.ts';
import { isAskedNatively, responsesBody } from '../responses/native-request.ts';
import { citationEvent, withCitations } from '../search/results.ts';
import { type AnswerClient, type Answering, sourceOf, type WholeDraft } from '../vocabulary/answers.ts';
import { type ChatBody, upstreamBody } from '../vocabulary/chat-body.ts';
import {
  type AnswerIdentity,
  madeOf,
  type Providers,
  type StreamedAnswer,
  type WholeAnswer,
} from '../vocabulary/providers.ts';
import { affordedOutput } from '../vocabulary/quote.ts';
import { countInputTokens, countTokens } from '../vocabulary/tokens.ts';
import type { NativeSearch, SearchNote, SearchResult } from '../vocabulary/web-search.ts';
import { type ChatOrder, isOurs } from './quoted-chat.ts';

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
    const limit = outputLimit(order, purchase.hold);
    this.call = {
      make: (endpoint) => ask(endpoint, body, limit),
      counted: (delivered) => counted(body, delivered),
    };
  }

  async whole(): Promise<WholeDraft> {
    const { order, purchase, call } = this;
    const { found, searches = [] } = order;
    const served = (await purchase.ask(call)) as EndpointAnswer<WholeAnswer>;
    const { answer } = served;
    await purchase.billCall(call, madeOf(answer));
    this.billSearches(answer, answer.searches?.invoiced);
    const body = found ? withCitations(answer.body, found) : answer.body;
    return { ...sourceOf(order.named.model, served), body, searches: answer.searches?.notes ?? searches };
  }

  /** Passes events on as they come. */
  async stream(client: AnswerClient): Promise<UpstreamFailure | undefined> {
    const { purchase, call } = this;
    const served = (await purchase.ask(call)) as EndpointAnswer<StreamedAnswer>;
    const { answer } = served;
    let failure: UpstreamFailure | undefined;
    client.begin(sourceOf(this.order.named.model, served));
    try {
      await this.sendSearches(served, client);
      await answer.relayTo((events, search) =>
        search === undefined ? client.write(events) : client.searched?.(search),
      );
    } catch (error) {
      failure = asFailure(error);
    }
    await purchase.billStream(call, served);
    this.billSearches(answer, answer.invoicedSearches?.());
    // A client that goes away owes what was generated for it; one that got nothing of a broken answer owes nothing.
    const left = failure?.code === 'client_disconnected' && (answer.usage() || answer.deliveredText() !== '');
    if (!failure || left || answer.hasTold()) return failure;
    throw failure;
  }

  /** What was searched for before the answer. */
  private async sendSearches({ endpoint }: EndpointAnswer<StreamedAnswer>, client: AnswerClient): Promise<void> {
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

/** The caller's limit, or else what the hold affords; undefined where that is all that the model can make. */
function outputLimit({ quote, named }: ChatOrder, { amount }: Hold): number | undefined {
  if (quote.wanted !== undefined) return quote.wanted;
  const afforded = affordedOutput(amount, quote);
  return afforded < named.model.maxOutput ? afforded : undefined;
}

/** Calls one endpoint, in its best protocol. */
export type AskUpstream = (
  endpoint: Endpoint,
  body: ChatBody,
  limit: number | undefined,
) => Promise<WholeAnswer | StreamedAnswer>;

/** @param search what the upstream is to search for by itself */
export function upstreamCall(
  order: ChatOrder,
  { hold, signal }: Purchase,
  providers: Providers,
  search?: NativeSearch,
): AskUpstream {
  const { named, reasoning, plan, responses, stream } = order;
  const identity = identityOf(order, hold);
  return (endpoint, body, limit) => {
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + named.passedOn };
    const natively = responses !== undefined && !isOurs(plan) && isAskedNatively(endpoint, responses, limit);
    const language = natively ? 'responses' : 'chat';
    const ask = providers.of(hold, upstream, language);
    const answer = ask({
      language,
      speaks,
      body: natively
        ? responsesBody(responses, target, limit, reasoning)
        : upstreamBody(body, target, limit, reasoning),
      stream,
      withoutReasoning: reasoning?.exclude === true,
      identity: identity(endpoint),
      search,
      signal,
    });
    return answerOfVariant(named, answer);
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
