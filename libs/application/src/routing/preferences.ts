/**
 * Routing preferences of a caller: the `provider` object of OpenRouter's convention, and suffixes of the model name.
 * The gateway applies them, and forwards them to a provider that is itself a router.
 */
import {
  type AnyModel,
  type Catalogue,
  type Endpoint,
  PRIVATE_PREFIX,
  QUANTIZATIONS,
  type Retirement,
  type TokenPricedModel,
  toSlug,
} from '#catalogue';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../errors.ts';
import { assertOffered } from '../missing-settings.ts';

const SORTS = ['price', 'throughput', 'latency', 'exacto'] as const;
export type RoutingSort = (typeof SORTS)[number];

export interface RoutingPreferences {
  /** Whether the caller stated any preference. A caller without one is charged no more than the listed price. */
  readonly isExplicit: boolean;
  /** Slugs of providers, as in `only` and `ignore`. */
  readonly order: readonly string[];
  readonly only: readonly string[];
  readonly ignore: readonly string[];
  readonly sort: RoutingSort | undefined;
  readonly zdr: boolean;
  readonly denyDataCollection: boolean;
  readonly quantizations: readonly string[];
  /** USD per million tokens, or per request. */
  readonly maxPrice: Readonly<Partial<Record<'prompt' | 'completion' | 'request', number>>>;
  /** Milliseconds to the first token. */
  readonly preferredMaxLatency: number | undefined;
  /** Tokens per second. */
  readonly preferredMinThroughput: number | undefined;
  readonly requireParameters: boolean;
  readonly allowFallbacks: boolean;
}

export const NO_PREFERENCES: RoutingPreferences = {
  isExplicit: false,
  order: [],
  only: [],
  ignore: [],
  sort: undefined,
  zdr: false,
  denyDataCollection: false,
  quantizations: [],
  maxPrice: {},
  preferredMaxLatency: undefined,
  preferredMinThroughput: undefined,
  requireParameters: false,
  allowFallbacks: true,
};

/** The result of resolving a model name. */
export interface ResolvedModel<M extends AnyModel = TokenPricedModel> {
  readonly model: M;
  readonly sort: RoutingSort | undefined;
  /** The suffix `:online` requested a web search. */
  readonly online: boolean;
  /** Suffixes without a meaning here; they are sent to the provider with its own name of the model. */
  readonly forwardedSuffix: string;
}

const SORT_BY_SUFFIX: ReadonlyMap<string, RoutingSort> = new Map([
  ['nitro', 'throughput'],
  ['floor', 'price'],
  ['exacto', 'exacto'],
]);

const PRIVATE_MODEL_MESSAGE =
  'Private models are only reachable through the local encrypting proxy: see "Private models" in the documentation at /docs';

/**
 * Resolves the model of a request. Private models are rejected, because the routes that call this function read the
 * request.
 * @throws InvalidRequestError 404 if there is no such model or variant, or no provider here serves it; 410 if it has
 * retired; 400 for a private model
 */
export function resolveModel(name: string, catalogue: Catalogue): ResolvedModel<AnyModel> {
  assertNotPrivate(name);
  const resolved = parseModelName(name, catalogue);
  assertModelOffered(resolved.model, catalogue);
  return resolved;
}

/** @throws InvalidRequestError 400 for the name of a private model */
export function assertNotPrivate(name: string): void {
  if (name.startsWith(PRIVATE_PREFIX)) throw new InvalidRequestError(400, PRIVATE_MODEL_MESSAGE, 'model');
}

/**
 * Finds a model by its id or alias, with or without suffixes, even one that is not offered or has retired.
 * @throws InvalidRequestError 404 if there is no such model or variant
 */
export function parseModelName(name: string, catalogue: Catalogue): ResolvedModel<AnyModel> {
  const exactMatch = catalogue.findModel(name);
  if (exactMatch) return { model: exactMatch, sort: undefined, online: false, forwardedSuffix: '' };
  const parts = name.split(':');
  // An id may contain a colon: the longest prefix that is a model counts.
  const length = parts.findLastIndex((_, i) => catalogue.findModel(parts.slice(0, i + 1).join(':')) !== undefined) + 1;
  let model = catalogue.findModel(parts.slice(0, length).join(':'));
  if (!model) throw new InvalidRequestError(404, `The model "${name}" does not exist`, 'model');
  const suffixes = parts.slice(length);
  let sort: RoutingSort | undefined;
  let online = false;
  let forwardedSuffix = '';
  for (const suffix of suffixes) {
    if (suffix === 'online') online = true;
    else if (SORT_BY_SUFFIX.has(suffix)) sort = SORT_BY_SUFFIX.get(suffix);
    else if (suffix === 'thinking' || suffix === 'extended') model = resolveVariant(model, suffix, name, catalogue);
    else forwardedSuffix += `:${suffix}`;
  }
  return { model, sort, online, forwardedSuffix };
}

/** @throws InvalidRequestError 410 if the model has retired; 404 if no provider of this installation serves it */
export function assertModelOffered(model: AnyModel, catalogue: Catalogue): void {
  const { id } = model;
  const retirement = catalogue.findRetirement(model);
  if (retirement?.isOver) throw createRetiredError(id, retirement);
  assertOffered(catalogue, id, `The model "${id}"`, 'model');
}

function createRetiredError(id: string, { day, successor }: Retirement): InvalidRequestError {
  const advice = successor === undefined ? '' : `; use "${successor}"`;
  return new InvalidRequestError(410, `The model "${id}" was retired on ${day}${advice}`, 'model');
}

function resolveVariant(
  model: AnyModel,
  suffix: 'thinking' | 'extended',
  name: string,
  catalogue: Catalogue,
): AnyModel {
  const variant = catalogue.findModel(('variants' in model && model.variants?.[suffix]) || '');
  if (!variant) throw new InvalidRequestError(404, `No endpoints found for ${name}`, 'model');
  return variant;
}

/**
 * Parses the `provider` object of a request; undefined and null are no preferences. A suffix of the model name
 * overrides the sort.
 * @throws InvalidRequestError 400 that names the field
 */
export function parseRoutingPreferences(provider: unknown, suffix?: RoutingSort): RoutingPreferences {
  if (provider === undefined || provider === null)
    return suffix ? { ...NO_PREFERENCES, isExplicit: true, sort: suffix } : NO_PREFERENCES;
  if (typeof provider !== 'object' || Array.isArray(provider)) throw invalidPreference('provider', 'an object');
  const fields = provider as Readonly<Record<string, unknown>>;
  const sort = parseSort(fields.sort);
  const dataCollection = fields.data_collection ?? 'allow';
  if (dataCollection !== 'allow' && dataCollection !== 'deny')
    throw invalidPreference('data_collection', 'allow or deny');
  return {
    isExplicit: suffix !== undefined || Object.values(fields).some((value) => (value ?? null) !== null),
    order: parseSlugs(fields, 'order'),
    only: parseSlugs(fields, 'only'),
    ignore: parseSlugs(fields, 'ignore'),
    sort: suffix ?? sort,
    zdr: parseFlag(fields, 'zdr', false),
    denyDataCollection: dataCollection === 'deny',
    quantizations: parseQuantizations(fields.quantizations),
    maxPrice: parseMaxPrice(fields.max_price),
    preferredMaxLatency: parsePreference(fields, 'preferred_max_latency', 1_000),
    preferredMinThroughput: parsePreference(fields, 'preferred_min_throughput', 1),
    requireParameters: parseFlag(fields, 'require_parameters', false),
    allowFallbacks: parseFlag(fields, 'allow_fallbacks', true),
  };
}

type PreferenceFields = Readonly<Record<string, unknown>>;

function invalidPreference(field: string, requirement: string): InvalidRequestError {
  const name = field === 'provider' ? field : `provider.${field}`;
  return new InvalidRequestError(400, `${name} must be ${requirement}`, name);
}

function parseSlugs(fields: PreferenceFields, field: string): readonly string[] {
  const value = fields[field] ?? [];
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
    throw invalidPreference(field, 'a list of provider names');
  return value.map(toSlug);
}

function parseFlag(fields: PreferenceFields, field: string, byDefault: boolean): boolean {
  const value = fields[field] ?? byDefault;
  if (typeof value !== 'boolean') throw invalidPreference(field, 'a boolean');
  return value;
}

/**
 * Allowed values of `sort.partition`. A request names one model, so sorting per model or among all models is the same.
 */
const PARTITIONS: readonly unknown[] = ['model', 'none', null, undefined];

/** Parses a sort: its name, or an object with the name in `by`. */
function parseSort(value: unknown): RoutingSort | undefined {
  if (typeof value === 'object' && !PARTITIONS.includes((value as { partition?: unknown } | null)?.partition))
    throw invalidPreference('sort.partition', 'model or none');
  const sortName = typeof value === 'object' && value !== null ? (value as { by?: unknown }).by : value;
  if (sortName === undefined || sortName === null) return undefined;
  if (!SORTS.includes(sortName as RoutingSort)) throw invalidPreference('sort', `one of ${SORTS.join(', ')}`);
  return sortName as RoutingSort;
}

function parseQuantizations(value: unknown): readonly string[] {
  const list = value ?? [];
  const isValid = Array.isArray(list) && list.every((item) => QUANTIZATIONS.includes(item));
  if (!isValid) throw invalidPreference('quantizations', `a list of ${QUANTIZATIONS.join(', ')}`);
  return list;
}

function parseMaxPrice(value: unknown): RoutingPreferences['maxPrice'] {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidPreference('max_price', 'an object');
  const prices: Partial<Record<'prompt' | 'completion' | 'request', number>> = {};
  for (const field of ['prompt', 'completion', 'request'] as const) {
    const price = (value as PreferenceFields)[field];
    if (price === undefined || price === null) continue;
    prices[field] = parseNumber(price, `max_price.${field}`);
  }
  return prices;
}

/** Parses a number, or the strictest of several percentiles. */
function parsePreference(fields: PreferenceFields, field: string, unit: number): number | undefined {
  const value = fields[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') return parseNumber(value, field) * unit;
  const percentiles = Object.values(value as PreferenceFields).filter(
    (percentile) => percentile !== undefined && percentile !== null,
  );
  const numbers = percentiles.map((percentile) => parseNumber(percentile, field));
  if (numbers.length === 0) return undefined;
  return (field === 'preferred_max_latency' ? Math.min(...numbers) : Math.max(...numbers)) * unit;
}

function parseNumber(value: unknown, field: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number) || number < 0)
    throw invalidPreference(field, 'a number of at least 0');
  return number;
}

/**
 * Returns the body with the enforced routing in its `provider` object, so that a router does not undo what is enforced
 * here. The sort of a suffix is added as well. Returns the same body if nothing is enforced, or `provider` is invalid.
 */
export function enforceRouting<B extends { readonly [field: string]: unknown }>(
  body: B,
  { model, sort }: ResolvedModel,
  { source, searchesWeb }: { readonly source: string; readonly searchesWeb: boolean },
): B {
  const { routing } = model;
  const zdr = requiresZdr(source, model);
  if (routing === undefined && sort === undefined && !zdr) return body;
  const requested = body.provider ?? {};
  if (typeof requested !== 'object' || Array.isArray(requested)) return body; // routing rejects it
  const { webSearchDropsZdr = false, ...routingRules } = routing ?? {};
  const enforced: Record<string, unknown> = { ...requested };
  if (Object.values(routingRules).some((names) => names.length > 0)) {
    for (const field of ['order', 'only', 'ignore']) delete enforced[field];
    Object.assign(enforced, routingRules);
  }
  if (zdr) enforced.zdr = true;
  if (webSearchDropsZdr && searchesWeb) delete enforced.zdr;
  if (sort !== undefined) enforced.sort = sort satisfies RoutingSort;
  return { ...body, provider: enforced };
}

/**
 * Whether the source of a request requires zero data retention: the web application does for models of the zdr tier.
 * API callers set `zdr` in the request.
 */
export function requiresZdr(source: string, { privacy }: Pick<AnyModel, 'privacy'>): boolean {
  return source === 'ui' && privacy === 'zdr';
}

/**
 * Removes a router from the lists of provider names, because it does not know itself as a provider.
 * @returns undefined if no preferences remain
 */
export function toProviderPreferences({ routes, slug }: Pick<Endpoint, 'routes' | 'slug'>, provider: unknown): unknown {
  if (!routes || typeof provider !== 'object' || provider === null) return provider;
  const preferences: Record<string, unknown> = { ...provider };
  const isRouterAllowed = listNames(provider as PreferenceFields, 'only').includes(slug);
  for (const field of ['order', 'only', 'ignore']) {
    const names = listNames(preferences, field);
    const otherNames = names.filter((name) => name !== slug);
    // If the router itself is allowed, each of its providers is.
    if (names.length > 0 && (otherNames.length === 0 || (field === 'only' && isRouterAllowed)))
      delete preferences[field];
    else if (otherNames.length < names.length) preferences[field] = otherNames;
  }
  return Object.keys(preferences).length > 0 ? preferences : undefined;
}

function listNames(fields: PreferenceFields, field: string): readonly string[] {
  const names = fields[field];
  return Array.isArray(names) ? names.map(String).map(toSlug) : [];
}

/**
 * Turns the failure of a provider that does not have what was requested into an invalid request if only that provider
 * could know it: a model with suffixes that have no meaning here, or the providers of a router. Other failures stay as
 * they are.
 * @throws UpstreamError
 */
export function mapNotFoundError<A>(
  { model, forwardedSuffix }: ResolvedModel<AnyModel>,
  { routes, slug }: Pick<Endpoint, 'routes' | 'slug'>,
  response: Promise<A>,
): Promise<A> {
  if (forwardedSuffix === '' && !routes) return response;
  return response.catch((error) => {
    const { status, operatorProblem } = toUpstreamError(error);
    const isModelRemoved = operatorProblem?.reason === 'model_removed';
    const isUnknownHere = forwardedSuffix === '' ? status === 404 && !isModelRemoved : status === 404 || isModelRemoved;
    if (!isUnknownHere) throw error;
    const param = forwardedSuffix === '' ? 'provider' : 'model';
    const reason = forwardedSuffix === '' ? `: ${slug} has none of the requested providers` : '';
    const message = `No endpoints found for ${model.id}${forwardedSuffix}${reason}`;
    throw new UpstreamError('invalid_request', message, { status: 404, param, cause: error });
  });
}
