import { Controller, Get, Header, Headers, Param, Query } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { assertModelOffered, CatalogueService, InvalidRequestError } from '#application';
import { type AnyModel, type Catalogue, MODEL_TYPES, type ModelType } from '#catalogue';
import { isModelAllowed } from '#domain';
import { parseUsd, toUsdJsonNumber } from '#kernel';
import type { MedianPrice } from '#projections';
import { PermittedModels } from '../edge/authentication/authenticator.ts';
import { ANTHROPIC_VERSION_HEADER } from '../edge/errors/error-formats.ts';
import { BadRequestError } from '../edge/errors/errors.ts';
import { MedianCosts } from '../edge/reading/median-costs.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { Operation } from '../openapi/operation.ts';
import { createAnthropicModelPage, toAnthropicModel } from './anthropic-models.ts';
import * as operations from './models.operations.ts';
import { ModelsQuery } from './models.requests.ts';
import { isAvailable, type ModelJson, toEndpointsJson, toModelJson } from './models-wire.ts';

/** More than there are filters. Further ones are those of API keys that permit some models only. */
const MAX_CACHED_LISTS = 200;
const JSON_TYPE = 'application/json; charset=utf-8';

/** The rows of the list, and the serialised lists by filter. */
interface ModelListCache {
  readonly catalogue: Catalogue;
  readonly medians: ReadonlyMap<string, MedianPrice>;
  readonly rows: readonly ModelJson[];
  readonly retiredRows: readonly ModelJson[];
  readonly serialized: LRUCache<string, Buffer>;
}

@Controller()
export class ModelsController {
  private cache: ModelListCache | undefined;

  constructor(
    private readonly catalogues: CatalogueService,
    private readonly medians: MedianCosts,
  ) {}

  /**
   * Lists chat models, or the models of the requested types. Private models are included only in `all`. An API key gets
   * the models that it permits. Anthropic's clients get pages of Anthropic's models.
   */
  @Get(['v1/models', 'models'])
  @Operation(operations.listModels)
  @Header('content-type', JSON_TYPE)
  async listModels(
    @Query() query: ModelsQuery,
    @PermittedModels() permitted: ModelPatterns,
    @Headers(ANTHROPIC_VERSION_HEADER) anthropicVersion: string | undefined,
  ): Promise<Buffer> {
    const filter = parseModelFilter(query.type || 'chat');
    const isPopular = isTrue(query.popular);
    // The route is public. Concurrent and slow readers share the same bytes, so that they use little memory.
    const { serialized, rows, retiredRows, medians } = this.refreshCache(await this.medians.loadByModel());
    const includesRetired = isTrue(query.include_retired);
    if (anthropicVersion !== undefined) {
      const select = (models: readonly ModelJson[]) => filterRows(models, filter, isPopular, permitted);
      const selected = [select(rows), select(retiredRows)] as const;
      return Buffer.from(JSON.stringify(createAnthropicModelPage(selected, query, includesRetired)));
    }
    const key = JSON.stringify([filter.includesPrivate, isPopular, includesRetired, filter.types, permitted ?? null]);
    const listing = { rows: includesRetired ? [...rows, ...retiredRows] : rows, medians };
    const list = serialized.get(key) ?? serializeList(listing, filter, isPopular, permitted);
    serialized.set(key, list);
    return list;
  }

  /** The path is a wildcard because ids contain a slash. */
  @Get(['v1/models/*', 'models/*'])
  @Operation(operations.getModel)
  async getModelDetails(
    @Param('*') id: string,
    @PermittedModels() permitted: ModelPatterns,
    @Headers(ANTHROPIC_VERSION_HEADER) anthropicVersion: string | undefined,
  ) {
    const model = this.resolveModel(id, permitted);
    const row = toModelJson(model, this.catalogues.current.findRetirement(model));
    if (anthropicVersion !== undefined) return toAnthropicModel(row);
    return { ...row, ...toMedianJson((await this.medians.loadByModel()).get(model.id)) };
  }

  @Get(['v1/models/:author/:slug/endpoints', 'models/:author/:slug/endpoints'])
  @Operation(operations.listEndpoints)
  listEndpoints(
    @Param('author') author: string,
    @Param('slug') slug: string,
    @PermittedModels() permitted: ModelPatterns,
  ) {
    return this.createEndpointList(`${author}/${slug}`, permitted);
  }

  /** `id` is an alias, or a model id whose slash is encoded. */
  @Get(['v1/models/:id/endpoints', 'models/:id/endpoints'])
  @Operation(operations.listEndpointsById)
  listEndpointsById(@Param('id') id: string, @PermittedModels() permitted: ModelPatterns) {
    return this.createEndpointList(id, permitted);
  }

  private createEndpointList(id: string, permitted: ModelPatterns) {
    return { data: toEndpointsJson(this.resolveModel(id, permitted), this.catalogues.current) };
  }

  /**
   * @throws InvalidRequestError 404 for an unknown or unavailable model, or one that the API key does not permit; 410
   *   for one that has retired
   */
  private resolveModel(id: string, permitted: ModelPatterns): AnyModel {
    const catalogue = this.catalogues.current;
    const model = catalogue.findModel(id);
    if (model) assertModelOffered(model, catalogue);
    if (!model || !isAvailable(model) || !isModelAllowed(model.id, permitted ?? null))
      throw new InvalidRequestError(404, `The model "${id}" does not exist`, 'model');
    return model;
  }

  private refreshCache(medians: ModelListCache['medians']): ModelListCache {
    const catalogue = this.catalogues.current;
    if (this.cache?.catalogue === catalogue && this.cache.medians === medians) return this.cache;
    const toRows = (models: readonly AnyModel[]) =>
      models.filter(isAvailable).map((model) => toModelJson(model, catalogue.findRetirement(model)));
    const [rows, retiredRows] = [toRows(catalogue.models), toRows(catalogue.retiredModels)];
    this.cache = { catalogue, medians, rows, retiredRows, serialized: new LRUCache({ max: MAX_CACHED_LISTS }) };
    return this.cache;
  }
}

/** What an API key permits. */
type ModelPatterns = readonly string[] | null | undefined;

interface ModelFilter {
  /** In the order of `MODEL_TYPES`, each once. */
  readonly types: readonly ModelType[];
  readonly includesPrivate: boolean;
}

function filterRows(
  rows: readonly ModelJson[],
  { types, includesPrivate }: ModelFilter,
  isPopular: boolean,
  permitted: ModelPatterns,
): readonly ModelJson[] {
  return rows.filter(
    ({ id, type, popular, privacyLevel }) =>
      isModelAllowed(id, permitted ?? null) &&
      types.includes(type) &&
      (includesPrivate || privacyLevel !== 'e2e') &&
      (popular || !isPopular),
  );
}

function serializeList(
  { rows, medians }: Pick<ModelListCache, 'rows' | 'medians'>,
  filter: ModelFilter,
  isPopular: boolean,
  permitted: ModelPatterns,
): Buffer {
  const data = filterRows(rows, filter, isPopular, permitted).map((row) => ({
    ...row,
    ...toMedianJson(medians.get(row.id)),
  }));
  return Buffer.from(JSON.stringify({ object: 'list', data, total_count: data.length, links: { next: null } }));
}

/**
 * Private models are included only in `all`, because the chat routes do not serve them.
 * @throws BadRequestError for an unknown type, unless the list contains `all`
 */
function parseModelFilter(typeList: string): ModelFilter {
  const allowedTypes = [...MODEL_TYPES, 'all'] as const;
  const types = typeList.split(',').map((name) => allowedTypes.find((type) => type === name.trim()));
  if (types.includes('all')) return { types: MODEL_TYPES, includesPrivate: true };
  if (types.includes(undefined))
    throw new BadRequestError(`type must be a comma-separated list of ${allowedTypes.join(', ')}`, 'type');
  return { types: MODEL_TYPES.filter((type) => types.includes(type)), includesPrivate: false };
}

/** Returns the median price of a query and how many such queries 1 USD pays for; both are null if it is unknown. */
function toMedianJson(median: MedianPrice | undefined) {
  if (median === undefined) return { median_cost: null, prompts_per_usd: null };
  const prompts = Number(parseUsd('1') / median.price);
  return {
    median_cost: { api: { usd: toUsdJsonNumber(median.price) }, sample_size: median.sampleSize },
    prompts_per_usd: prompts,
  };
}
