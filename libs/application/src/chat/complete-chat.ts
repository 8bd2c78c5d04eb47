/** One chat completion: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Catalogue, Endpoint, Model } from '#catalogue';
import { NO_USAGE, type Query, type QueryType, type Usage } from '#domain';
import { money, ZERO } from '#kernel';
import { asFailure } from '../attempts.ts';
import { Catalogues } from '../catalogues.ts';
import { UnservableRequest, UpstreamFailure } from '../failures.ts';
import { type Caller, type Hold, Holds } from '../holds.ts';
import { HOLD_MARGIN_MS, type PaidCall, PaidCalls, type Receipt, type Served } from '../paid-calls.ts';
import { withEnforcedRouting } from '../routing/passed-on.ts';
import { Pulses } from '../routing/pulses.ts';
import { routeFor } from '../routing/route.ts';
import { modelNamed, type NamedModel, routingWish } from '../routing/wish.ts';
import { type RunningTask, RunningTasks } from '../running.ts';
import {
  boundResultTokens,
  citationEvent,
  type SearchPlan,
  searchPlan,
  withCitations,
  withoutSearchTool,
  withResults,
} from '../search/search-plan.ts';
import { type SearchResult, WebSearch } from '../search/web-search.ts';
import { type ChatBody, upstreamBody } from './body.ts';
import { affordedOutput, nameWhatIsAfforded, type Quote, quoteFor } from './quote.ts';
import { type Reasoning, reasoningWish } from './reasoning.ts';
import { countInputTokens, countTokens } from './tokens.ts';
import { type AnswerIdentity, ChatUpstreams, type StreamedAnswer, type WholeAnswer } from './upstream.ts';

export abstract class ChatLimits {
  /** Longest time for a whole answer. */
  abstract readonly totalTimeoutMs: number;
  /** How long an answer is read on when its client has gone. */
  abstract readonly drainTimeoutMs: number;
}

/** Where a streamed answer goes. */
export interface ChatClient {
  readonly gone: boolean;
  /** Resolves when there is room for more. It is told of everything, also when it is gone. */
  write(events: Uint8Array): Promise<void> | undefined;
}

export interface WholeChat {
  readonly kind: 'whole';
  readonly body: Readonly<Record<string, unknown>>;
  readonly receipt: Receipt;
}

export interface StreamedChat {
  readonly kind: 'stream';
  /** The id of the model, whatever it was asked for by. */
  readonly model: string;
  /** Must be called: it settles. Resolves when the charge is durable; `failure` says why the answer broke off. */
  relayTo(client: ChatClient): Promise<{ readonly receipt: Receipt; readonly failure: UpstreamFailure | undefined }>;
}

export type ChatAnswer = WholeChat | StreamedChat;

export class CompleteChat extends Command<ChatAnswer> {
  constructor(
    readonly caller: Caller,
    readonly requestId: string,
    readonly source: string,
    readonly body: ChatBody,
    readonly type: QueryType = 'chat_completion',
  ) {
    super();
  }
}

/** A request whose money is held. */
interface Job {
  readonly command: CompleteChat;
  readonly named: NamedModel;
  /** The request as it goes on: with what the web search found, without the tool that asked for it. */
  readonly body: ChatBody;
  readonly found: readonly SearchResult[];
  readonly quote: Quote;
  readonly reasoning: Reasoning | undefined;
  readonly hold: Hold;
  readonly paid: PaidCall;
  readonly task: RunningTask;
}

/** Fields by the name that lists of parameters have for them. */
const PARAMETER_OF: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_tokens',
  reasoning_effort: 'reasoning',
};
/** Fields that are about the request and not about what a model must know. */
const NO_PARAMETERS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'provider',
  'plugins',
]);

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
    private readonly limits: ChatLimits,
  ) {}

  async execute(command: CompleteChat): Promise<ChatAnswer> {
    const catalogue = this.catalogues.current;
    const named = chatModel(command.body.model, catalogue);
    const reasoning = reasoningWish(command.body);
    const plan = searchPlan(command.body, named.model, named.online, catalogue);
    const asked = withEnforcedRouting(withoutSearchTool(command.body), named, plan !== undefined);
    const more = plan && { inputTokens: boundResultTokens(plan), fees: money.fromJson(plan.fee.price) };
    const quote = quoteFor(asked, named.model, this.endpointsFor(asked, named, plan !== undefined), more);
    const task = this.running.begin(this.limits.totalTimeoutMs);
    try {
      const hold = await this.hold(command, named, quote, plan !== undefined);
      const found = plan ? await this.search(hold, plan, task.signal) : [];
      const body = plan ? withResults(asked, plan, found) : asked;
      const paid: PaidCall = {
        model: named.model,
        endpoints: quote.endpoints,
        priceList: catalogue.priceList,
        hold,
        ...(plan ? { fees: [plan.fee] } : {}),
        attempts: [],
        signal: task.signal,
        counted: (delivered) => estimated(body, delivered),
      };
      const job: Job = { command, named, body, found, quote, reasoning, hold, paid, task };
      const served = await this.paid.ask(paid, (endpoint) => this.ask(job, endpoint));
      const { answer } = served;
      if (answer.kind === 'stream') {
        const relayTo = (client: ChatClient) => this.relay(job, { ...served, answer }, client);
        return { kind: 'stream', model: named.model.id, relayTo };
      }
      const receipt = await this.settle(job, served);
      task.finished();
      return { kind: 'whole', body: plan ? withCitations(answer.body, found) : answer.body, receipt };
    } catch (error) {
      task.finished();
      throw error;
    }
  }

  private endpointsFor(body: ChatBody, { model, sort }: NamedModel, searchesWeb: boolean): readonly Endpoint[] {
    const given = Object.keys(body).filter((field) => body[field] !== null && !NO_PARAMETERS.has(field));
    return routeFor({
      model,
      wish: routingWish(body.provider, sort),
      fields: given.map((field) => PARAMETER_OF[field] ?? field),
      usesTools: (body.tools?.length ?? 0) > 0,
      searchesWeb,
      chance: Math.random(),
      pulse: (endpoint) => this.pulses.of(model, endpoint),
    }).endpoints;
  }

  private async hold(command: CompleteChat, { model }: NamedModel, quote: Quote, searches: boolean): Promise<Hold> {
    const { caller, requestId, source, type } = command;
    const { atLeast, atMost } = quote;
    const online = searches || model.searchesWeb === true;
    const query: Query = { model: model.id, type, source, online, free: atMost === 0n };
    const lifetimeMs = this.limits.totalTimeoutMs + this.limits.drainTimeoutMs + HOLD_MARGIN_MS;
    try {
      return await this.holds.take({ caller, requestId, query, atLeast, atMost, lifetimeMs });
    } catch (error) {
      throw nameWhatIsAfforded(error, quote);
    }
  }

  /** The search runs before the model answers. One that fails costs nothing. */
  private async search(hold: Hold, plan: SearchPlan, signal: AbortSignal): Promise<readonly SearchResult[]> {
    try {
      return await this.web.search(hold, { ...plan, signal });
    } catch (error) {
      const failure = asFailure(error);
      await this.holds.release(hold, failure, []);
      throw failure;
    }
  }

  /** Where the caller named no limit, the output is limited to what the hold affords. */
  private ask(
    { command, named, body: asked, quote, reasoning, hold, task }: Job,
    endpoint: Endpoint,
  ): Promise<WholeAnswer | StreamedAnswer> {
    const { model, passedOn } = named;
    const afforded = affordedOutput(hold.amount, quote);
    const limit = quote.wanted ?? (afforded < model.maxOutput ? afforded : undefined);
    const body = upstreamBody(asked, { ...endpoint, model: endpoint.model + passedOn }, limit, reasoning);
    const identity = identityOf(hold, model, endpoint);
    const { upstream } = endpoint;
    const stream = command.body.stream === true;
    const withoutReasoning = reasoning?.exclude === true;
    const call = { upstream, body, stream, withoutReasoning, identity, signal: task.signal };
    return this.upstreams.complete(hold, call);
  }

  /** Passes events on as they come. When the client goes, the answer is read on for a while: it will be invoiced. */
  private async relay(job: Job, served: Served<StreamedAnswer>, client: ChatClient) {
    let failure: UpstreamFailure | undefined;
    let drain: NodeJS.Timeout | undefined;
    if (job.found.length > 0) {
      const identity = identityOf(job.hold, job.named.model, served.endpoint);
      await client.write(citationEvent(identity, job.found));
    }
    try {
      await served.answer.relayTo((events) => {
        if (client.gone) drain ??= setTimeout(() => job.task.cutShort(clientGone()), this.limits.drainTimeoutMs);
        return client.write(events);
      });
    } catch (error) {
      failure = asFailure(error);
    }
    clearTimeout(drain);
    try {
      return { receipt: await this.settleOrRelease(job, served, failure), failure };
    } finally {
      job.task.finished();
    }
  }

  /** An answer that broke off before its first token costs the customer nothing; its input may be invoiced all the same. */
  private async settleOrRelease(job: Job, served: Served<StreamedAnswer>, failure?: UpstreamFailure): Promise<Receipt> {
    const { answer, endpoint } = served;
    if (!failure || answer.usage() || answer.deliveredText() !== '') return this.settle(job, served, failure);
    await this.paid.release(job.paid, endpoint, failure, '');
    return { usage: NO_USAGE, charged: ZERO, chargedForInput: ZERO };
  }

  private async settle(job: Job, served: Served<WholeAnswer | StreamedAnswer>, failure?: UpstreamFailure) {
    const { answer, endpoint, began } = served;
    const milliseconds = performance.now() - began;
    const reported = answer.kind === 'whole' ? answer.usage : answer.usage();
    const delivered = reported ? '' : answer.deliveredText();
    const receipt = await this.paid.settle(job.paid, { endpoint, reported, delivered, failure });
    const { output, reasoning } = receipt.usage;
    if (answer.kind === 'stream') this.pulses.delivered(job.named.model, endpoint, output + reasoning, milliseconds);
    return receipt;
  }
}

/** @throws UnservableRequest when there is no such model, or it cannot be had here */
function chatModel(name: string, catalogue: Catalogue): NamedModel {
  if (name.startsWith('private/')) {
    throw new UnservableRequest(400, 'Private models are only reachable through the local encrypting proxy', 'model');
  }
  const named = modelNamed(name, catalogue);
  if (named.model.type === 'chat') return named as NamedModel;
  throw new UnservableRequest(400, `The model "${name}" does not chat; it is of type ${named.model.type}`, 'model');
}

async function estimated(body: ChatBody, delivered: string): Promise<Usage> {
  const [input, output] = await Promise.all([countInputTokens(body), countTokens(delivered)]);
  return { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

function identityOf({ holdId }: Hold, { id }: Model, { provider }: Endpoint): AnswerIdentity {
  return { id: `gen-${holdId}`, model: id, provider };
}

function clientGone(): UpstreamFailure {
  return new UpstreamFailure('client_disconnected', 'The client went away and the answer took too long');
}
