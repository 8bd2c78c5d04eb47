import { Controller, Get, Header, Param, Query } from '@nestjs/common';
import { CatalogueService, InvalidRequestError } from '#application';
import { type AnyModel, type Catalogue, MODEL_TYPES, type ModelType } from '#catalogue';
import { parseUsd, toUsdJsonNumber } from '#kernel';
import type { MedianPrice } from '#projections';
import { BadRequestError } from '../edge/errors/errors.ts';
import { MedianCosts } from '../edge/reading/median-costs.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './models.operations.ts';
import { ModelsQuery } from './models.requests.ts';
import { isAvailable, type ModelJson, toEndpointsJson, toModelJson } from './models-wire.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/** What is listed, and its lists as they were written, by what was asked for. */
interface Listed {
  readonly catalogue: Catalogue;
  readonly medians: ReadonlyMap<string, MedianPrice>;
  readonly rows: readonly ModelJson[];
  readonly written: Map<string, Buffer>;
}

@Controller()
export class ModelsController {
  private listed: Listed | undefined;

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly medians: MedianCosts,
  ) {}

  /** Chat models, or those of the types that are asked for; private ones where everything is. */
  @Get(['v1/models', 'models'])
  @Operation(operations.listModels)
  @Header('content-type', JSON_TYPE)
  async models(@Query() query: ModelsQuery): Promise<Buffer> {
    const wanted = wantedTypes(query.type || 'chat');
    const isPopular = isTrue(query.popular);
    // Anybody may ask, many at once, and read as slowly as he likes: all get the same bytes.
    const { written, ...listed } = this.current(await this.medians.byModel());
    const key = `${wanted.everything} ${isPopular} ${wanted.types.join()}`;
    const list = written.get(key) ?? Buffer.from(JSON.stringify(listOf(listed, wanted, isPopular)));
    written.set(key, list);
    return list;
  }

  /** Ids contain a slash. */
  @Get(['v1/models/*', 'models/*'])
  @Operation(operations.getModel)
  async model(@Param('*') id: string) {
    const model = this.named(id);
    return { ...toModelJson(model), ...medianWire((await this.medians.byModel()).get(model.id)) };
  }

  @Get(['v1/models/:author/:slug/endpoints', 'models/:author/:slug/endpoints'])
  @Operation(operations.listEndpoints)
  endpoints(@Param('author') author: string, @Param('slug') slug: string) {
    return { data: toEndpointsJson(this.named(`${author}/${slug}`)) };
  }

  /** An alias, or an id whose slash is encoded. */
  @Get(['v1/models/:id/endpoints', 'models/:id/endpoints'])
  @Operation(operations.listEndpointsById)
  endpointsById(@Param('id') id: string) {
    return { data: toEndpointsJson(this.named(id)) };
  }

  /** @throws InvalidRequestError 404 */
  private named(id: string): AnyModel {
    const model = this.catalogues.current.findModel(id);
    if (!model || !isAvailable(model)) throw new InvalidRequestError(404, `The model "${id}" does not exist`, 'model');
    return model;
  }

  private current(medians: Listed['medians']): Listed {
    const catalogue = this.catalogues.current;
    if (this.listed?.catalogue === catalogue && this.listed.medians === medians) return this.listed;
    const rows = catalogue.models.filter(isAvailable).map(toModelJson);
    this.listed = { catalogue, medians, rows, written: new Map() };
    return this.listed;
  }
}

interface Wanted {
  /** In the order of `MODEL_TYPES`, each once. */
  readonly types: readonly ModelType[];
  readonly everything: boolean;
}

function listOf(
  { rows, medians }: Pick<Listed, 'rows' | 'medians'>,
  { types, everything }: Wanted,
  isPopular: boolean,
) {
  const data = rows
    .filter(
      ({ type, popular, privacyLevel }) =>
        types.includes(type) && (everything || privacyLevel !== 'e2e') && (popular || !isPopular),
    )
    .map((row) => ({ ...row, ...medianWire(medians.get(row.id)) }));
  return { object: 'list', data, total_count: data.length, links: { next: null } };
}

/**
 * Private models are among everything alone: who asks for chats wants what can be asked on the routes for them.
 * @throws BadRequestError when a word is no type
 */
function wantedTypes(words: string): Wanted {
  const known = [...MODEL_TYPES, 'all'] as const;
  const types = words.split(',').map((word) => known.find((each) => each === word.trim()));
  if (types.includes('all')) return { types: MODEL_TYPES, everything: true };
  if (types.includes(undefined))
    throw new BadRequestError(`type must be a comma-separated list of ${known.join(', ')}`, 'type');
  return { types: MODEL_TYPES.filter((type) => types.includes(type)), everything: false };
}

/** The median cost of a query, and how many of them 1 USD pays for; null where there were none. */
function medianWire(median: MedianPrice | undefined) {
  if (median === undefined) return { median_cost: null, prompts_per_usd: null };
  const prompts = Number(parseUsd('1') / median.price);
  return {
    median_cost: { api: { usd: toUsdJsonNumber(median.price) }, sample_size: median.sampleSize },
    prompts_per_usd: prompts,
  };
}
