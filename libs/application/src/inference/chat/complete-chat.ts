/** One chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Endpoint, Model } from '#catalogue';
import { NO_USAGE, type Query, type QueryType, type Usage } from '#domain';
import { ZERO } from '#kernel';
import { Catalogues } from '../../catalogues.ts';
import { UpstreamFailure } from '../../failures.ts';
import { asFailure } from '../../paying/attempts.ts';
import { type Caller, type Hold, Holds } from '../../paying/holds.ts';
import { CallLimits } from '../../paying/limits.ts';
import {
  HOLD_MARGIN_MS,
  type PaidCall,
  PaidCalls,
  type Receipt,
  type Served,
  usedBy,
} from '../../paying/paid-calls.ts';
import { type RunningTask, RunningTasks } from '../../paying/running.ts';
import { answerOfVariant } from '../../routing/passed-on.ts';
import { Pulses } from '../../routing/pulses.ts';
import {
  boundCarried,
  isAskedNatively,
  type NativeRequest,
  responsesBody,
  truncates,
} from '../responses/native-request.ts';
import { boundResultTokens, citationEvent, withCitations, withResults } from '../search/results.ts';
import { type SearchBefore, type SearchByTool, type SearchPlan } from '../search/search-plan.ts';
import { SearchingChat } from '../search/searching-chat.ts';
import { type SearchResult, WebSearch } from '../search/web-search.ts';
import { type ChatAnswer, type ChatClient, Patience, sourceOf, type WholeChat } from '../vocabulary/answers.ts';
import { type ChatBody, upstreamBody } from '../vocabulary/chat-body.ts';
import {
  type AnswerIdentity,
  ChatUpstreams,
  type StreamedAnswer,
  type WholeAnswer,
} from '../vocabulary/chat-upstream.ts';
import { affordedOutput, nameWhatIsAfforded } from '../vocabulary/quote.ts';
import type { NativeSearch, SearchNote } from '../vocabulary/searching.ts';
import { countInputTokens, countTokens } from '../vocabulary/tokens.ts';
import { affordedSearches, type QuotedChat, quotedChat } from './quoted-chat.ts';
import { fitting } from './truncation.ts';

export class CompleteChat extends Command<ChatAnswer> {
  constructor(
    readonly caller: Caller,
    readonly requestId: string,
    readonly source: string,
    readonly body: ChatBody,
    readonly type: QueryType = 'chat_completion',
    /** The same request for endpoints that speak Responses; an answer in their words is asked for only with it. */
    readonly responses?: NativeRequest,
  ) {
    super();
  }
}

/** A request whose money is held. */
interface Job extends QuotedChat {
  readonly command: CompleteChat;
  readonly hold: Hold;
  readonly paid: PaidCall;
  readonly task: RunningTask;
  /** What a search before the answer has found. */
  readonly found?: readonly SearchResult[];
  /** What the upstream is to search for by itself. */
  readonly native?: NativeSearch;
}

@CommandHandler(CompleteChat)
export class CompleteChatHandler implements ICommandHandler<CompleteChat> {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly pulses: Pulses,
    private readonly holds: Holds,
    private readonly paid: PaidCalls,
    private readonly upstreams: ChatUpstreams,
    private readonly web: WebSearch,
    private readonly running: RunningTasks,
    private readonly limits: CallLimits,
  ) {}

  async execute(command: CompleteChat): Promise<ChatAnswer> {
    const { responses } = command;
    const carried = responses && boundCarried(responses);
    const quoted = quotedChat(command.body, this.catalogues.current, this.pulses, carried);
    const asked = responses && truncates(responses.body) ? await cut(quoted, responses) : quoted;
    const task = this.running.begin(this.limits.totalTimeoutMs);
    try {
      const hold = await this.hold(command, asked);
      const plain = jobOf(command, asked, hold, task);
      const { plan } = asked;
      if (plan?.kind === 'tool') return await this.searching(plain, plan).answer();
      const job = plan === undefined ? plain : await this.searched(plain, plan);
      const served = await this.paid.ask(job.paid, (endpoint) => this.askOnce(job, endpoint));
      const { answer } = served;
      if (answer.kind === 'stream') {
        const relayTo = (client: ChatClient) => this.relay(job, { ...served, answer }, client);
        return { kind: 'stream', ...sourceOf(job.named.model, served), relayTo };
      }
      const receipt = await this.settle(job, served);
      task.finished();
      if (plan === undefined)
        return { kind: 'whole', ...sourceOf(job.named.model, served), body: answer.body, receipt };
      return wholeOf(job, plan, { ...served, answer }, receipt);
    } catch (error) {
      task.finished();
      throw error;
    }
  }

  /** What has to be done before the model is asked, or is to be done while it answers. */
  private async searched(job: Job, plan: Exclude<SearchPlan, SearchByTool>): Promise<Job> {
    switch (plan.kind) {
      case 'before': {
        const found = await this.search(job.hold, plan, job.task.signal);
        const body = withResults(job.body, plan, found);
        const counted = (delivered: string) => estimated(body, delivered);
        return { ...job, body, found, paid: { ...job.paid, fees: [plan.fee], counted } };
      }
      case 'upstream':
        return { ...job, ...affordedSearches(job, plan, job.hold.amount) };
      case 'anyway':
        return job;
    }
  }

  private searching(job: Job, plan: SearchByTool): SearchingChat {
    const { named, body, quote, hold, paid, task } = job;
    const { model } = named;
    const request = {
      plan,
      body,
      model,
      wanted: quote.wanted,
      hold,
      signal: task.signal,
      paid,
      task,
      identityOf: (endpoint: Endpoint) => identityOf(hold, model, endpoint),
      ask: (endpoint: Endpoint, round: ChatBody, limit: number | undefined) => this.call(job, endpoint, round, limit),
      counted: estimated,
    };
    const { web, paid: calls, pulses, limits } = this;
    return new SearchingChat(request, { web, paid: calls, pulses, drainTimeoutMs: limits.drainTimeoutMs });
  }

  private async hold(command: CompleteChat, { named, online, quote }: QuotedChat): Promise<Hold> {
    const { caller, requestId, source, type } = command;
    const { atLeast, atMost } = quote;
    const query: Query = { model: named.model.id, type, source, online, free: atMost === 0n };
    const lifetimeMs = this.limits.totalTimeoutMs + this.limits.drainTimeoutMs + HOLD_MARGIN_MS;
    try {
      return await this.holds.take({ caller, requestId, query, atLeast, atMost, lifetimeMs });
    } catch (error) {
      throw nameWhatIsAfforded(error, quote);
    }
  }

  /** The search runs before the model answers. One that fails costs nothing. */
  private async search(hold: Hold, plan: SearchBefore, signal: AbortSignal): Promise<readonly SearchResult[]> {
    try {
      return await this.web.search(hold, { ...plan, signal });
    } catch (error) {
      const failure = asFailure(error);
      await this.holds.release(hold, failure, []);
      throw failure;
    }
  }

  /** Where the caller named no limit, the output is limited to what the hold affords. */
  private askOnce(job: Job, endpoint: Endpoint): Promise<WholeAnswer | StreamedAnswer> {
    const { named, body, quote, hold } = job;
    const { maxOutput } = named.model;
    const afforded = affordedOutput(hold.amount, quote);
    return this.call(job, endpoint, body, quote.wanted ?? (afforded < maxOutput ? afforded : undefined));
  }

  private call(
    { command, named, reasoning, plan, hold, task, native }: Job,
    endpoint: Endpoint,
    body: ChatBody,
    limit: number | undefined,
  ): Promise<WholeAnswer | StreamedAnswer> {
    const { model, passedOn } = named;
    const { upstream, speaks } = endpoint;
    const target = { ...endpoint, model: endpoint.model + passedOn };
    const { responses } = command;
    const natively = responses !== undefined && !isOurs(plan) && isAskedNatively(endpoint, responses, limit);
    const answer = this.upstreams.complete(hold, {
      upstream,
      language: natively ? 'responses' : 'chat',
      speaks,
      body: natively
        ? responsesBody(responses, target, limit, reasoning)
        : upstreamBody(body, target, limit, reasoning),
      stream: command.body.stream === true,
      withoutReasoning: reasoning?.exclude === true,
      identity: identityOf(hold, model, endpoint),
      search: native,
      signal: task.signal,
    });
    return answerOfVariant(named, answer);
  }

  /** Passes events on as they come. When the client goes, the answer is read on for a while: it will be invoiced. */
  private async relay(job: Job, served: Served<StreamedAnswer>, client: ChatClient) {
    let failure: UpstreamFailure | undefined;
    const patience = new Patience(client, job.task, this.limits.drainTimeoutMs);
    const { plan } = job;
    try {
      if (plan !== undefined) await this.tellSearches(job, plan, served.endpoint, client);
      await served.answer.relayTo((events, search) => {
        patience.check();
        return search === undefined ? client.write(events) : client.searched?.(search);
      });
    } catch (error) {
      failure = asFailure(error);
    }
    patience.over();
    try {
      return { receipt: await this.settleOrRelease(job, served, failure), failure };
    } finally {
      job.task.finished();
    }
  }

  /** What was searched for before the answer. */
  private async tellSearches(
    { hold, named, found = [] }: Job,
    plan: SearchPlan,
    endpoint: Endpoint,
    client: ChatClient,
  ) {
    for (const search of searchedBefore(plan)) {
      await client.searched?.({ ...search, state: 'searching' });
      await client.searched?.(search);
    }
    if (found.length > 0) await client.write(citationEvent(identityOf(hold, named.model, endpoint), found));
  }

  /**
   * An answer that broke off before the customer had any of it costs him nothing, unless it was he who went away; what it
   * used is invoiced all the same.
   */
  private async settleOrRelease(job: Job, served: Served<StreamedAnswer>, failure?: UpstreamFailure): Promise<Receipt> {
    const { answer, endpoint } = served;
    const left = failure?.code === 'client_disconnected' && (answer.usage() || answer.deliveredText() !== '');
    if (!failure || left || answer.hasTold()) return this.settle(job, served, failure);
    const paid = job.native ? withNativeFees(job, answer) : job.paid;
    await this.paid.releaseUsed(paid, endpoint, failure, await usedBy(paid, answer.usage(), answer.deliveredText()));
    return { usage: NO_USAGE, charged: ZERO, chargedForInput: ZERO };
  }

  private async settle(job: Job, served: Served<WholeAnswer | StreamedAnswer>, failure?: UpstreamFailure) {
    const { answer, endpoint, began } = served;
    const milliseconds = performance.now() - began;
    const reported = answer.kind === 'whole' ? answer.usage : answer.usage();
    const delivered = reported ? '' : answer.deliveredText();
    const paid = job.native ? withNativeFees(job, answer) : job.paid;
    const receipt = await this.paid.settle(paid, { endpoint, reported, delivered, failure });
    const { output, reasoning } = receipt.usage;
    if (answer.kind === 'stream') this.pulses.delivered(job.named.model, endpoint, output + reasoning, milliseconds);
    return receipt;
  }
}

function jobOf(command: CompleteChat, asked: QuotedChat, hold: Hold, task: RunningTask): Job {
  const { named, priceList, quote, body } = asked;
  const paid: PaidCall = {
    model: named.model,
    endpoints: quote.endpoints,
    priceList,
    hold,
    attempts: [],
    signal: task.signal,
    counted: (delivered) => estimated(body, delivered),
  };
  return { ...asked, command, hold, paid, task };
}

/** What a search of ours has found stands in the messages of a chat. */
function isOurs(plan: SearchPlan | undefined): boolean {
  return plan?.kind === 'before' || plan?.kind === 'tool';
}

/** Where an endpoint does not leave out by itself what is too long, that is done here. */
async function cut(quoted: QuotedChat, responses: NativeRequest): Promise<QuotedChat> {
  const { quote, plan, body, named } = quoted;
  const isDoneThere = (endpoint: Endpoint) => !isOurs(plan) && isAskedNatively(endpoint, responses, quote.wanted);
  if (quote.endpoints.every(isDoneThere)) return quoted;
  const more = plan?.kind === 'before' ? boundResultTokens(plan, plan.prompt) : 0;
  return { ...quoted, body: await fitting(body, named.model, more) };
}

async function estimated(body: ChatBody, delivered: string): Promise<Usage> {
  const [input, output] = await Promise.all([countInputTokens(body), countTokens(delivered)]);
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

function identityOf({ holdId }: Hold, { id }: Model, { provider }: Endpoint): AnswerIdentity {
  return { id: `gen-${holdId}`, model: id, provider };
}

function wholeOf(
  { named, found = [] }: Job,
  plan: SearchPlan,
  served: Served<WholeAnswer>,
  receipt: Receipt,
): WholeChat {
  const { answer } = served;
  const body = plan.kind === 'before' ? withCitations(answer.body, found) : answer.body;
  return {
    kind: 'whole',
    ...sourceOf(named.model, served),
    body,
    receipt,
    searches: answer.searches?.notes ?? searchedBefore(plan),
  };
}

function searchedBefore(plan: SearchPlan): readonly SearchNote[] {
  return plan.kind === 'before' ? [{ at: 0, query: plan.query, state: 'completed' }] : [];
}

/** Each search that the upstream invoices is a fee. */
function withNativeFees({ paid, plan }: Job, answer: WholeAnswer | StreamedAnswer): PaidCall {
  const searches = answer.kind === 'whole' ? (answer.searches?.invoiced ?? 0) : (answer.invoicedSearches?.() ?? 0);
  if (plan?.kind !== 'upstream' || searches === 0) return paid;
  return { ...paid, fees: Array.from({ length: searches }, () => plan.fee) };
}
