/** Sells embeddings: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { type Catalogue, type Endpoint, isFreeTier, type TokenPricedModel } from '#catalogue';
import type { Query } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { BillingEngine, type ClientConnection } from '../../billing/billing-engine.ts';
import type { Order, Receipt } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { EmbeddingsResponse } from '../../providers/provider.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import {
  mapNotFoundError,
  parseRoutingPreferences,
  type ResolvedModel,
  resolveModel,
} from '../../routing/preferences.ts';
import { listSetFields, selectRoute } from '../../routing/route.ts';
import { calculateMaxCallPrice } from '../chat/chat-quote.ts';
import { InferenceServices } from '../chat/inference-services.ts';
import {
  assertInputsFit,
  assertKnownTokens,
  countEmbeddingTokens,
  countMaxInputTokens,
  type EmbeddingInput,
  parseEmbeddingInputs,
} from './inputs.ts';

/** A request in OpenAI's format. Any other field is parsed where it is used, or only forwarded. */
export interface EmbeddingRequestBody {
  readonly model: string;
  readonly input: unknown;
  readonly encoding_format?: string | null;
  readonly dimensions?: number | null;
  readonly [field: string]: unknown;
}

export interface EmbeddingsResult {
  /** The model id of the catalogue. */
  readonly model: string;
  /** The list of embeddings as JSON text. */
  readonly data: string;
  readonly receipt: Receipt;
}

export interface CreateEmbeddingsParams {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  readonly connection: ClientConnection;
}

export class CreateEmbeddings extends Command<EmbeddingsResult> {
  constructor(
    readonly payer: Payer,
    readonly request: CreateEmbeddingsParams,
    readonly body: EmbeddingRequestBody,
  ) {
    super();
  }
}

/** Fields that are not model parameters, so no endpoint needs to support them. */
const NON_PARAMETER_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'provider']);

@CommandHandler(CreateEmbeddings)
export class CreateEmbeddingsHandler implements ICommandHandler<CreateEmbeddings> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly health: EndpointHealth,
    private readonly billing: BillingEngine,
    private readonly services: InferenceServices,
  ) {}

  async execute({ payer, request, body }: CreateEmbeddings): Promise<EmbeddingsResult> {
    const { requestId, source, connection } = request;
    const { providers, tokenCounter } = this.services;
    const { current: catalogue } = this.catalogues;
    const resolved = resolveEmbeddingModel(body, catalogue);
    const { model } = resolved;
    const inputs = parseEmbeddingInputs(body.input);
    const endpoints = this.selectEndpoints({ body, inputs, source }, resolved);
    assertKnownTokens(inputs, model.vocabulary ?? Number.POSITIVE_INFINITY);
    const maxPrice = calculateMaxInputPrice(inputs, model, endpoints);
    const query: Query = { model: model.id, type: 'embedding', source, online: false, free: isFreeTier(model) };
    const { priceList } = catalogue;
    const order: Order = { id: requestId, query, model, endpoints, priceList, minPrice: maxPrice, maxPrice };
    // The price bound needs no tokens to be counted. They are counted only for a payer who can pay for them.
    await assertInputsFit(inputs, model.context, async (texts, options) => {
      await this.billing.assertAffordable(payer, order);
      return tokenCounter.countEach(payer.id, texts, options);
    });
    const embed = async (purchase: Purchase) => {
      const { hold, signal } = purchase;
      const call: UpstreamCall<EmbeddingsResponse> = {
        send: (endpoint) => {
          const sent = toUpstreamBody(body, endpoint, endpoint.model + resolved.forwardedSuffix);
          const embed = providers.get(hold, endpoint.upstream, 'embeddings');
          return mapNotFoundError(resolved, endpoint, embed({ body: sent, count: inputs.length, signal }));
        },
        estimateUsage: async () => ({ input: await countEmbeddingTokens(inputs, tokenCounter, payer.id) }),
      };
      const { response } = await purchase.call(call);
      const { usage, vendorId, reportedBill } = response;
      await purchase.billCall(call, { usage, getDeliveredText: () => '', vendorId, reportedBill });
      return response;
    };
    const { result, receipt } = await this.billing.sell(payer, order, embed, connection);
    return { model: model.id, data: result.data, receipt };
  }

  /**
   * Excludes endpoints without support for `dimensions` if the request sets this field. They would ignore it, and
   * vectors of different lengths cannot be compared.
   */
  private selectEndpoints(
    {
      body,
      inputs,
      source,
    }: Pick<CreateEmbeddingsParams, 'source'> & {
      readonly body: EmbeddingRequestBody;
      readonly inputs: readonly EmbeddingInput[];
    },
    { model, sort }: ResolvedModel,
  ): readonly Endpoint[] {
    const supportsDimensions = (endpoint: Endpoint) => endpoint.parameters.includes('dimensions');
    const capable =
      (body.dimensions ?? undefined) === undefined ? model.endpoints : model.endpoints.filter(supportsDimensions);
    return selectRoute({
      model: { ...model, endpoints: capable },
      preferences: parseRoutingPreferences(body.provider, sort),
      fields: listSetFields(body, NON_PARAMETER_FIELDS),
      usesTools: false,
      sendsTokens: inputs.some((input) => typeof input !== 'string'),
      searchesWeb: false,
      source,
      chance: this.billing.runtime.chance(),
      getPerformance: (endpoint) => this.health.get(model, endpoint),
    }).endpoints;
  }
}

/** Calculates the maximum price of the inputs at the most expensive of these endpoints. */
function calculateMaxInputPrice(
  inputs: readonly EmbeddingInput[],
  { context }: TokenPricedModel,
  endpoints: readonly Endpoint[],
): PicoUsd {
  const tokens = inputs.reduce((sum, input) => sum + Math.min(countMaxInputTokens(input), context), 0);
  return money.max(...endpoints.map(({ tariff }) => calculateMaxCallPrice(tokens, 0, tariff)));
}

/**
 * @throws InvalidRequestError if the model does not exist, is not an embedding model, or does not support the requested
 * dimensions
 */
function resolveEmbeddingModel(body: EmbeddingRequestBody, catalogue: Catalogue): ResolvedModel {
  const resolved = resolveModel(body.model, catalogue);
  const { id, type } = resolved.model;
  if (type !== 'embedding')
    throw new InvalidRequestError(400, `The model "${id}" is not an embedding model; its type is ${type}`, 'model');
  const { dimensions = 0, endpoints } = resolved.model as TokenPricedModel;
  const requestedDimensions = body.dimensions ?? undefined;
  if (requestedDimensions !== undefined && !endpoints.some(({ parameters }) => parameters.includes('dimensions')))
    throw new InvalidRequestError(
      400,
      `The model "${id}" supports ${dimensions} dimensions only; omit this field`,
      'dimensions',
    );
  if (requestedDimensions !== undefined && requestedDimensions > dimensions)
    throw new InvalidRequestError(400, `dimensions must be at most ${dimensions} for this model`, 'dimensions');
  return resolved as ResolvedModel;
}

/** Includes only supported fields. The encoding format is always sent, because the vectors are forwarded unchanged. */
function toUpstreamBody(body: EmbeddingRequestBody, { parameters }: Endpoint, model: string): Record<string, unknown> {
  const sent: Record<string, unknown> = { model, input: body.input, encoding_format: body.encoding_format ?? 'float' };
  for (const field of parameters) {
    const value = body[field];
    if (value !== undefined && value !== null) sent[field] = value;
  }
  return sent;
}
