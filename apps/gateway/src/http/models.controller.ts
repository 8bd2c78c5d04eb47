import { Controller, Get, Param, Query } from '@nestjs/common';
import { IsOptional, IsString } from 'class-validator';
import { Catalogues, UnservableRequest } from '#application';
import type { Catalogue, Endpoint, Model } from '#catalogue';
import { formatUsd, usd } from '#kernel';
import type { MedianCost } from '#projections';
import { plainNumber, usdNumber } from '../edge/json.ts';
import { MedianCosts } from '../edge/median-costs.ts';
import { valid } from '../edge/validated.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { BOOLEAN } from '../openapi/schemas.ts';
import { ModelList, Model as ModelSchema } from './models.schemas.ts';
import { perToken, price } from './prices.ts';

class ModelsQuery {
  @Field({ description: 'Types, divided by commas, or all; chat models unless it is sent' })
  @IsOptional()
  @IsString()
  type?: string;

  @Field({ ...BOOLEAN, description: 'Only those that many use' })
  popular?: unknown;
}

@Controller()
export class ModelsController {
  private readonly known = new WeakMap<Catalogue, readonly Row[]>();

  constructor(
    private readonly catalogues: Catalogues,
    private readonly medians: MedianCosts,
  ) {}

  /** Chat models, or those of the types that are asked for. */
  @Get(['v1/models', 'models'])
  @Operation({
    id: 'listModels',
    tag: 'Models',
    summary: 'Lists models and their prices',
    auth: 'public',
    query: ModelsQuery,
    answer: json(ModelList),
  })
  async models(@Query() sent: unknown) {
    const query = valid(ModelsQuery, sent);
    const types = (query.type || 'chat').split(',');
    const data = this.rows.filter(
      ({ type, popular }) => (types.includes('all') || types.includes(type)) && (popular || query.popular !== 'true'),
    );
    const medians = await this.medians.byModel();
    const priced = data.map((row) => ({ ...row, ...medianWire(medians.get(row.id)) }));
    return { object: 'list', data: priced, total_count: data.length, links: { next: null } };
  }

  /** Ids have a slash in them. */
  @Get(['v1/models/*', 'models/*'])
  @Operation({
    id: 'getModel',
    tag: 'Models',
    summary: 'Tells of one model',
    auth: 'public',
    params: {
      id: { description: 'The id of a model, with its slash as it is or as %2F', example: 'openai/gpt-5-mini' },
    },
    answer: json(ModelSchema),
    errors: [404],
  })
  async model(@Param('*') id: string) {
    const model = this.catalogues.current.find(id);
    if (!model) throw new UnservableRequest(404, `The model "${id}" does not exist`, 'model');
    return { ...wire(model), ...medianWire((await this.medians.byModel()).get(model.id)) };
  }

  private get rows(): readonly Row[] {
    const catalogue = this.catalogues.current;
    const rows = this.known.get(catalogue) ?? catalogue.models.map(wire);
    this.known.set(catalogue, rows);
    return rows;
  }
}

/** What a query costs in the middle, and how many of them a USD pays; null where nobody has asked yet. */
function medianWire(median: MedianCost | undefined) {
  if (median === undefined) return { median_cost: null, prompts_per_usd: null };
  const prompts = Number(usd('1') / median.price);
  return {
    median_cost: { api: { usd: usdNumber(median.price) }, sample_size: median.sample },
    prompts_per_usd: prompts,
  };
}

type Row = ReturnType<typeof wire>;

/** One row for several readers: OpenAI's clients, OpenRouter's strict ones, and those of services of this kind. */
function wire(model: Model) {
  const { rates } = cheapest(model);
  const million = (rate: bigint) => usdNumber(price(rate, rates));
  const prices = { input: million(rates.input), output: million(rates.output), cacheRead: million(rates.cacheRead) };
  const both = { input_per_1M: prices.input, output_per_1M: prices.output };
  const modality = `${model.inputs.join('+')}->${model.outputs.join('+')}`;
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    created_at: plainNumber(`${model.created}000`),
    owned_by: model.provider.toLowerCase(),
    provider: model.provider,
    name: model.name,
    type: model.type,
    description: model.description,
    canonical_slug: model.id,
    context_length: model.context,
    popular: model.popular,
    privacyLevel: model.privacy,
    architecture: {
      modality,
      input_modalities: model.inputs,
      output_modalities: model.outputs,
      tokenizer: 'Other',
      instruct_type: null,
    },
    pricing: {
      input_per_1M_tokens: prices.input,
      output_per_1M_tokens: prices.output,
      cache_read_per_1M_tokens: prices.cacheRead,
      api: both,
      ui: both,
      prompt: perToken(rates.input, rates),
      completion: perToken(rates.output, rates),
      input_cache_read: perToken(rates.cacheRead, rates),
      request: formatUsd(price(rates.request, rates)),
    },
    supported_parameters: [...new Set(model.endpoints.flatMap(({ parameters }) => parameters))],
    top_provider: {
      context_length: model.context,
      max_completion_tokens: model.maxOutput || null,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_voices: null,
    links: { details: `/v1/models/${model.id}` },
  };
}

/** The prices that are listed: what a request costs that is routed by price. */
function cheapest({ endpoints }: Model): Endpoint {
  const level = ({ rates }: Endpoint) => 3n * rates.input + rates.output + rates.request;
  return endpoints.reduce((low, each) => (level(each) < level(low) ? each : low));
}
