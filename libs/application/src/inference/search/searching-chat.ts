/** A chat whose model may search the web: it is asked, searches are made for it, and it is asked again. */
import type { Endpoint } from '#catalogue';
import { NO_USAGE, type Usage } from '#domain';
import { ZERO } from '#kernel';
import type { UpstreamFailure } from '../../failures.ts';
import { asFailure } from '../../paying/attempts.ts';
import { addedUse, type PaidCall, type PaidCalls, type Receipt, type Served, usedBy } from '../../paying/paid-calls.ts';
import type { RunningTask } from '../../paying/running.ts';
import type { Pulses } from '../../routing/pulses.ts';
import {
  type ChatAnswer,
  type ChatClient,
  clientGone,
  Patience,
  sourceOf,
  type WholeChat,
} from '../vocabulary/answers.ts';
import type { ChatBody } from '../vocabulary/chat-body.ts';
import type { AnswerIdentity, StreamedAnswer, WholeAnswer } from '../vocabulary/chat-upstream.ts';
import { type Round, type RoundsRequest, SearchRounds } from './search-rounds.ts';
import type { Rounds, Said } from './search-tool.ts';
import { StreamedRounds } from './streamed-rounds.ts';
import type { WebSearch } from './web-search.ts';
import { WholeRounds } from './whole-rounds.ts';

export interface SearchingRequest extends RoundsRequest {
  /** Without fees: they come with the searches. */
  readonly paid: PaidCall;
  readonly task: RunningTask;
  identityOf(endpoint: Endpoint): AnswerIdentity;
  /** Asks one endpoint. @throws UpstreamFailure */
  ask(endpoint: Endpoint, body: ChatBody, limit: number | undefined): Promise<WholeAnswer | StreamedAnswer>;
  /** The usage that no upstream reported. */
  counted(body: ChatBody, delivered: string): Promise<Usage>;
}

export interface SearchingPorts {
  readonly web: WebSearch;
  readonly paid: PaidCalls;
  readonly pulses: Pulses;
  readonly drainTimeoutMs: number;
}

interface Ended {
  readonly receipt: Receipt;
  readonly failure: UpstreamFailure | undefined;
}

/** How rounds end that cannot be followed by a search, whatever was called for. */
const CUT_SHORT: ReadonlySet<unknown> = new Set(['length', 'content_filter']);

export class SearchingChat {
  private readonly rounds: SearchRounds;
  private readonly call: PaidCall;
  private round: Round;
  /** Rounds that were heard to their end. */
  private completed = 0;

  constructor(
    private readonly request: SearchingRequest,
    private readonly ports: SearchingPorts,
  ) {
    const { paid } = request;
    this.rounds = new SearchRounds(request, ports.web);
    this.round = this.rounds.first(paid.endpoints);
    const counted = (delivered: string) => request.counted(this.round.body, delivered);
    this.call = { ...paid, fees: this.rounds.fees, counted };
  }

  /** Any endpoint may answer the first round. @throws UpstreamFailure when there is no answer, and the money is given back */
  async answer(): Promise<ChatAnswer> {
    const { request, round } = this;
    const first = await this.ports.paid.ask(this.call, (endpoint) => request.ask(endpoint, round.body, round.limit));
    const { answer } = first;
    if (answer.kind === 'whole') return this.whole({ ...first, answer });
    const relayTo = (client: ChatClient) => this.relay({ ...first, answer }, client);
    return { kind: 'stream', ...sourceOf(request.model, first), relayTo };
  }

  private async whole(first: Served<WholeAnswer>): Promise<WholeChat> {
    const answers = new WholeRounds(this.rounds.name);
    const { failure, receipt } = await this.run(first, answers);
    if (failure) throw failure;
    this.request.task.finished();
    return {
      kind: 'whole',
      ...sourceOf(this.request.model, first),
      body: answers.body,
      receipt,
      searches: answers.searches,
    };
  }

  private async relay(first: Served<StreamedAnswer>, client: ChatClient): Promise<Ended> {
    const { task, identityOf } = this.request;
    const patience = new Patience(client, task, this.ports.drainTimeoutMs);
    try {
      return await this.run(first, new StreamedRounds(identityOf(first.endpoint), this.rounds.name, client, patience));
    } finally {
      patience.over();
      task.finished();
    }
  }

  private async run<A extends WholeAnswer | StreamedAnswer>(first: Served<A>, answers: Rounds<A>): Promise<Ended> {
    let failure: UpstreamFailure | undefined;
    try {
      await answers.end(await this.allRounds(first, answers));
    } catch (error) {
      failure = asFailure(error);
    }
    return { receipt: await this.close(first.endpoint, answers, failure), failure };
  }

  /** @returns why it ended. @throws UpstreamFailure when it broke off */
  private async allRounds<A extends WholeAnswer | StreamedAnswer>(first: Served<A>, answers: Rounds<A>) {
    const { endpoint } = first;
    for (let served = first; ; ) {
      const said = await this.taken(served, answers);
      if (!this.callsForSearch(said)) return finishOf(said);
      if (answers.abandoned) throw clientGone();
      const found = await this.rounds.search(endpoint, said, (search) => answers.note(search));
      if (found.length > 0) await answers.cite(found);
      const next = this.rounds.next(endpoint);
      if (!next) return 'length';
      if (answers.abandoned) throw clientGone();
      this.round = next;
      served = await this.again<A>(endpoint);
    }
  }

  private callsForSearch({ calls, callsClient, finish }: Said): boolean {
    return this.round.offers && calls.length > 0 && !callsClient && !CUT_SHORT.has(finish);
  }

  /** Hears an answer out. What it used is known then, also when it broke off. */
  private async taken<A extends WholeAnswer | StreamedAnswer>(
    { answer, endpoint, began }: Served<A>,
    answers: Rounds<A>,
  ) {
    try {
      const said = await answers.take(answer);
      this.completed++;
      return said;
    } finally {
      const reported = answer.kind === 'whole' ? answer.usage : answer.usage();
      const { output, reasoning } = await this.account(reported, reported ? '' : answer.deliveredText());
      const milliseconds = performance.now() - began;
      const { pulses } = this.ports;
      if (answer.kind === 'stream') pulses.delivered(this.request.model, endpoint, output + reasoning, milliseconds);
    }
  }

  private async again<A>(endpoint: Endpoint): Promise<Served<A>> {
    const { body, limit } = this.round;
    try {
      return (await this.ports.paid.askAgain(this.call, endpoint, () =>
        this.request.ask(endpoint, body, limit),
      )) as Served<A>;
    } catch (error) {
      const { delivered } = asFailure(error);
      if (delivered !== undefined) await this.account(undefined, delivered);
      throw error;
    }
  }

  private async account(reported: Usage | undefined, delivered: string): Promise<Usage> {
    const used = await usedBy(this.call, reported, delivered);
    this.rounds.used = addedUse(this.rounds.used, used);
    return used.usage;
  }

  /**
   * Charges what was used. Where the client has had nothing of an answer that broke off, the house bears it, unless it was
   * the client that went away after a round.
   */
  private async close(endpoint: Endpoint, { told }: Rounds<never>, failure?: UpstreamFailure): Promise<Receipt> {
    const { used } = this.rounds;
    const ours = failure && !told && !(failure.code === 'client_disconnected' && this.completed > 0);
    if (!ours) return this.ports.paid.settleUsed(this.call, endpoint, used, failure);
    await this.ports.paid.releaseUsed(this.call, endpoint, failure, used);
    return { usage: NO_USAGE, charged: ZERO, chargedForInput: ZERO };
  }
}

/** A call that nobody answers is not told of. */
function finishOf({ calls, callsClient, finish }: Said): string {
  const reason = finish ?? (callsClient ? 'tool_calls' : 'stop');
  return calls.length > 0 && !callsClient && reason === 'tool_calls' ? 'stop' : reason;
}
