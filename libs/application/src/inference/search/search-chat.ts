/** Executes a chat whose model may call the search tool, in rounds of a model call and its searches. */
import type { Endpoint } from '#catalogue';
import type { Usage } from '#domain';
import type { Purchase } from '../../billing/purchase.ts';
import type { EndpointResponse, UpstreamCall } from '../../billing/upstream-call.ts';
import { createDisconnectError, toUpstreamError, type UpstreamError } from '../../errors.ts';
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
import { type Round, SearchRounds, type SearchRoundsParams } from './search-rounds.ts';
import type { RoundCollector, RoundOutput } from './search-tool.ts';
import { StreamedRounds } from './streamed-rounds.ts';

export interface SearchChatParams extends SearchRoundsParams {
  getIdentity(endpoint: Endpoint): CompletionIdentity;
  /** @throws UpstreamError */
  callUpstream(endpoint: Endpoint, body: ChatBody, limit: number | undefined): Promise<Completion | CompletionStream>;
  /** Estimates usage that the provider did not report. */
  estimateUsage(body: ChatBody, delivered: string): Promise<Usage>;
}

/** After a round with one of these finish reasons no search is made, because its calls may be incomplete. */
const NO_SEARCH_FINISH_REASONS: ReadonlySet<unknown> = new Set(['length', 'content_filter']);

export class SearchChat implements ChatExecutor {
  private readonly rounds: SearchRounds;
  private round: Round;
  /** Number of rounds that were read completely. */
  private completedRounds = 0;
  /** The call of the current round, for any endpoint. */
  private readonly call: UpstreamCall<Completion | CompletionStream>;

  constructor(
    private readonly request: SearchChatParams,
    private readonly purchase: Purchase,
  ) {
    this.rounds = new SearchRounds(request, purchase);
    this.round = this.rounds.createFirstRound(purchase.models.current.endpoints);
    this.call = {
      send: (endpoint) => request.callUpstream(endpoint, this.round.body, this.round.limit),
      estimateUsage: (delivered) => request.estimateUsage(this.round.body, delivered),
    };
  }

  async complete(): Promise<CompletionDraft> {
    const first = (await this.purchase.call(this.call)) as EndpointResponse<Completion>;
    const collector = new BufferedRounds(this.rounds.toolName);
    await collector.end(await this.runRounds(first, collector));
    return { ...toCompletionSource(this.request.model, first), body: collector.body, searches: collector.searches };
  }

  async stream(client: CompletionWriter): Promise<UpstreamError | undefined> {
    const { getIdentity, model } = this.request;
    const first = (await this.purchase.call(this.call)) as EndpointResponse<CompletionStream>;
    client.begin(toCompletionSource(model, first));
    const collector = new StreamedRounds(getIdentity(first.endpoint), this.rounds.toolName, client);
    try {
      await collector.end(await this.runRounds(first, collector));
      return undefined;
    } catch (error) {
      const failure = toUpstreamError(error);
      const owesAfterDisconnect = failure.code === 'client_disconnected' && this.completedRounds > 0;
      if (collector.hasDelivered || owesAfterDisconnect) return failure;
      throw failure;
    }
  }

  /** Runs all rounds. @returns the finish reason of the completion @throws UpstreamError if it was interrupted */
  private async runRounds<A extends Completion | CompletionStream>(
    first: EndpointResponse<A>,
    collector: RoundCollector<A>,
  ) {
    const { endpoint } = first;
    for (let served = first; ; ) {
      const roundOutput = await this.readRound(served, collector);
      if (!this.requestsSearch(roundOutput)) return getFinishReason(roundOutput);
      if (collector.isAbandoned) throw createDisconnectError();
      const results = await this.rounds.search(endpoint, roundOutput, (search) => collector.recordSearch(search));
      if (results.length > 0) await collector.cite(results);
      await this.rounds.reserveSearch(endpoint);
      const next = this.rounds.createNextRound(endpoint);
      if (!next) return 'length';
      if (collector.isAbandoned) throw createDisconnectError();
      this.round = next;
      served = (await this.purchase.callSameEndpoint(this.call, endpoint)) as EndpointResponse<A>;
    }
  }

  private requestsSearch({ calls, hasClientCalls, finishReason }: RoundOutput): boolean {
    return (
      this.round.hasSearchTool && calls.length > 0 && !hasClientCalls && !NO_SEARCH_FINISH_REASONS.has(finishReason)
    );
  }

  /** Reads the response of a round and bills its usage, even if it was interrupted. */
  private async readRound<A extends Completion | CompletionStream>(
    served: EndpointResponse<A>,
    collector: RoundCollector<A>,
  ): Promise<RoundOutput> {
    const { response, endpoint, sentAtMs, firstByteAtMs } = served;
    try {
      const roundOutput = await collector.collectRound(response);
      this.completedRounds++;
      return roundOutput;
    } finally {
      this.purchase.markStreaming(undefined);
      if (response.kind === 'stream')
        await this.purchase.billStream(this.call, { response, endpoint, sentAtMs, firstByteAtMs });
      else await this.purchase.billCall(this.call, toCallResult(response));
    }
  }
}

/**
 * Returns the finish reason that the client gets. The client does not see search calls, so it must not get `tool_calls`
 * if there are no other calls.
 */
function getFinishReason({ calls, hasClientCalls, finishReason }: RoundOutput): string {
  const reason = finishReason ?? (hasClientCalls ? 'tool_calls' : 'stop');
  return calls.length > 0 && !hasClientCalls && reason === 'tool_calls' ? 'stop' : reason;
}
