/** Embeddings of texts: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { Catalogue, Endpoint, Model } from '#catalogue';
import { dearest, NO_USAGE, type Query } from '#domain';
import { money } from '#kernel';
import { Catalogues } from '../../catalogues.ts';
import { UnservableRequest } from '../../failures.ts';
import { type Caller, type Hold, Holds } from '../../paying/holds.ts';
import { CallLimits } from '../../paying/limits.ts';
import { HOLD_MARGIN_MS, type PaidCall, PaidCalls, type Receipt } from '../../paying/paid-calls.ts';
import { RunningTasks } from '../../paying/running.ts';
import { answerOfVariant } from '../../routing/passed-on.ts';
import { Pulses } from '../../routing/pulses.ts';
import { fieldsGiven, routeFor } from '../../routing/route.ts';
import { modelNamed, type NamedModel, routingWish } from '../../routing/wish.ts';
import { assertWithin, boundTokens, countInputs, type EmbeddingInput, inputsIn } from './inputs.ts';
import { EmbeddingUpstreams } from './upstream.ts';

/** A request in OpenAI's shape, as far as the gateway reads it. */
export interface EmbeddingBody {
  readonly model: string;
  readonly input: unknown;
  readonly encoding_format?: string | null;
  readonly dimensions?: number | null;
  readonly [field: string]: unknown;
}

export interface EmbeddingAnswer {
  /** Our name of the model. */
  readonly model: string;
  /** The embeddings, as JSON. */
  readonly data: string;
  readonly receipt: Receipt;
}

export class CreateEmbeddings extends Command<EmbeddingAnswer> {
  constructor(
    readonly caller: Caller,
    readonly requestId: string,
    readonly source: string,
    readonly body: EmbeddingBody,
  ) {
    super();
  }
}

/** Fields that are about the request and not about what a model must know. */
const NO_PARAMETERS: ReadonlySet<string> = new Set(['model', 'input', 'provider']);

@CommandHandler(CreateEmbeddings)
export class CreateEmbeddingsHandler implements ICommandHandler<CreateEmbeddings> {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly pulses: Pulses,
    private readonly holds: Holds,
    private readonly paid: PaidCalls,
    private readonly upstreams: EmbeddingUpstreams,
    private readonly running: RunningTasks,
    private readonly limits: CallLimits,
  ) {}

  async execute(command: CreateEmbeddings): Promise<EmbeddingAnswer> {
    const { body } = command;
    const catalogue = this.catalogues.current;
    const named = embeddingModel(body, catalogue);
    const { model } = named;
    const inputs = inputsIn(body.input);
    const endpoints = this.endpointsFor(body, named);
    await assertWithin(inputs, model.context);
    const task = this.running.begin(this.limits.totalTimeoutMs);
    const { signal } = task;
    try {
      const hold = await this.hold(command, model, endpoints, inputs);
      const counted = async () => ({ ...NO_USAGE, input: await countInputs(inputs) });
      const { priceList } = catalogue;
      const call: PaidCall = { model, endpoints, priceList, hold, attempts: [], signal, counted };
      const { answer, endpoint } = await this.paid.ask(call, (each) => {
        const { upstream, model } = each;
        const asked = upstreamBody(body, each, model + named.passedOn);
        const vectors = this.upstreams.embed(hold, { upstream, body: asked, count: inputs.length, signal });
        return answerOfVariant(named, vectors);
      });
      const receipt = await this.paid.settle(call, { endpoint, reported: answer.usage, delivered: '' });
      return { model: model.id, data: answer.data, receipt };
    } finally {
      task.finished();
    }
  }

  /** An endpoint that does not know `dimensions` would ignore them, and its vectors could not be compared. */
  private endpointsFor(body: EmbeddingBody, { model, sort }: NamedModel): readonly Endpoint[] {
    const shortens = (endpoint: Endpoint) => endpoint.parameters.includes('dimensions');
    const able = (body.dimensions ?? undefined) === undefined ? model.endpoints : model.endpoints.filter(shortens);
    return routeFor({
      model: { ...model, endpoints: able },
      wish: routingWish(body.provider, sort),
      fields: fieldsGiven(body, NO_PARAMETERS),
      usesTools: false,
      searchesWeb: false,
      chance: Math.random(),
      pulse: (endpoint) => this.pulses.of(model, endpoint),
    }).endpoints;
  }

  private hold(
    { caller, requestId, source }: CreateEmbeddings,
    model: Model,
    endpoints: readonly Endpoint[],
    inputs: readonly EmbeddingInput[],
  ): Promise<Hold> {
    const tokens = inputs.reduce((sum, input) => sum + Math.min(boundTokens(input), model.context), 0);
    const amount = money.most(...endpoints.map(({ rates }) => dearest(tokens, 0, rates)));
    const query: Query = { model: model.id, type: 'embedding', source, online: false, free: amount === 0n };
    const lifetimeMs = this.limits.totalTimeoutMs + HOLD_MARGIN_MS;
    return this.holds.take({ caller, requestId, query, atLeast: amount, atMost: amount, lifetimeMs });
  }
}

/** @throws UnservableRequest when there is no such model, it makes no embeddings, or none of this length */
function embeddingModel(body: EmbeddingBody, catalogue: Catalogue): NamedModel {
  const named = modelNamed(body.model, catalogue);
  const { id, type } = named.model;
  if (type !== 'embedding')
    throw new UnservableRequest(400, `The model "${id}" makes no embeddings; it is of type ${type}`, 'model');
  const { dimensions = 0, endpoints } = named.model as Model;
  const wanted = body.dimensions ?? undefined;
  if (wanted !== undefined && !endpoints.some(({ parameters }) => parameters.includes('dimensions')))
    throw new UnservableRequest(400, `The model "${id}" has vectors of ${dimensions} dimensions only`, 'dimensions');
  if (wanted !== undefined && wanted > dimensions)
    throw new UnservableRequest(400, `dimensions must be at most ${dimensions} for this model`, 'dimensions');
  return named as NamedModel;
}

/** The fields that the upstream knows. The vectors are asked for as the caller wants them, so that nobody has to touch them. */
function upstreamBody(body: EmbeddingBody, { parameters }: Endpoint, model: string): Record<string, unknown> {
  const sent: Record<string, unknown> = { model, input: body.input, encoding_format: body.encoding_format ?? 'float' };
  for (const field of parameters) {
    const value = body[field];
    if (value !== undefined && value !== null) sent[field] = value;
  }
  return sent;
}
