/** A chat whose model may search the web: it is asked, searches are made for it, and it is asked again. */
import type { Endpoint } from '#catalogue';
import type { Usage } from '#domain';
import { createDisconnectError } from '../../billing/billing-engine.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { EndpointResponse, UpstreamCall } from '../../billing/upstream-call.ts';
import { toUpstreamError, type UpstreamError } from '../../errors.ts';
import {
  type Completion,
  type CompletionIdentity,
  type CompletionStream,
  toCallResult,
} from '../../providers/provider.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import {
  type ChatExecutor,
  type CompletionDraft,
  type CompletionWriter,
  toCompletionSource,
} from '../chat/completion-writer.ts';
import { BufferedRounds } from './buffered-rounds.ts';
import { type Round, type RoundsRequest, SearchRounds } from './search-rounds.ts';
import type { RoundCollector, RoundOutput } from './search-tool.ts';
import { StreamedRounds } from './streamed-rounds.ts';

export interface SearchingRequest extends RoundsRequest {
  identityOf(endpoint: Endpoint): CompletionIdentity;
  /** Asks one endpoint. @throws UpstreamError */
  ask(endpoint: Endpoint, body: ChatBody, limit: number | undefined): Promise<Completion | CompletionStream>;
  /** The usage that no upstream reported. */
  counted(body: ChatBody, delivered: string): Promise<Usage>;
}

/** Ends of rounds after which no search is made, whatever was called. */
const CUT_SHORT: ReadonlySet<unknown> = new Set(['length', 'content_filter']);

export class SearchChat implements ChatExecutor {
  private readonly rounds: SearchRounds;
  private round: Round;
  /** Rounds that were read to their end. */
  private completed = 0;
  /** The present round, as it can be asked of any endpoint. */
  private readonly call: UpstreamCall<Completion | CompletionStream>;

  constructor(
    private readonly request: SearchingRequest,
    private readonly purchase: Purchase,
  ) {
    this.rounds = new SearchRounds(request, purchase);
    this.round = this.rounds.first(purchase.sale.endpoints);
    this.call = {
      make: (endpoint) => request.ask(endpoint, this.round.body, this.round.limit),
      counted: (delivered) => request.counted(this.round.body, delivered),
    };
  }

  async whole(): Promise<CompletionDraft> {
    const first = (await this.purchase.ask(this.call)) as EndpointResponse<Completion>;
    const answers = new BufferedRounds(this.rounds.name);
    await answers.end(await this.allRounds(first, answers));
    return { ...toCompletionSource(this.request.model, first), body: answers.body, searches: answers.searches };
  }

  async stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    const { identityOf, model } = this.request;
    const first = (await this.purchase.ask(this.call)) as EndpointResponse<CompletionStream>;
    client.begin(toCompletionSource(model, first));
    const answers = new StreamedRounds(identityOf(first.endpoint), this.rounds.name, client);
    try {
      await answers.end(await this.allRounds(first, answers));
      return undefined;
    } catch (error) {
      const failure = toUpstreamError(error);
      const left = failure.code === 'client_disconnected' && this.completed > 0;
      if (answers.delivered || left) return failure;
      throw failure;
    }
  }

  /** @returns why it ended. @throws UpstreamError when it broke off */
  private async allRounds<A extends Completion | CompletionStream>(
    first: EndpointResponse<A>,
    answers: RoundCollector<A>,
  ) {
    const { endpoint } = first;
    for (let served = first; ; ) {
      const said = await this.taken(served, answers);
      if (!this.callsForSearch(said)) return finishOf(said);
      if (answers.abandoned) throw createDisconnectError();
      const found = await this.rounds.search(endpoint, said, (search) => answers.note(search));
      if (found.length > 0) await answers.cite(found);
      await this.rounds.reserve(endpoint);
      const next = this.rounds.next(endpoint);
      if (!next) return 'length';
      if (answers.abandoned) throw createDisconnectError();
      this.round = next;
      served = (await this.purchase.askAgain(this.call, endpoint)) as EndpointResponse<A>;
    }
  }

  private callsForSearch({ calls, callsClient, finish }: RoundOutput): boolean {
    return this.round.offers && calls.length > 0 && !callsClient && !CUT_SHORT.has(finish);
  }

  /** Reads an answer to its end. Its usage is billed then, also when it broke off. */
  private async taken<A extends Completion | CompletionStream>(
    served: EndpointResponse<A>,
    answers: RoundCollector<A>,
  ): Promise<RoundOutput> {
    const { answer, endpoint, asked, began } = served;
    try {
      if (answer.kind === 'stream') this.purchase.generating(endpoint);
      const said = await answers.take(answer);
      this.completed++;
      return said;
    } finally {
      this.purchase.generating(undefined);
      if (answer.kind === 'stream') await this.purchase.billStream(this.call, { answer, endpoint, asked, began });
      else await this.purchase.billCall(this.call, toCallResult(answer));
    }
  }
}

/** A call that is not answered is not reported. */
function finishOf({ calls, callsClient, finish }: RoundOutput): string {
  const reason = finish ?? (callsClient ? 'tool_calls' : 'stop');
  return calls.length > 0 && !callsClient && reason === 'tool_calls' ? 'stop' : reason;
}
