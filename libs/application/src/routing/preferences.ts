/**
 * What a caller prefers in routing: the `provider` object of OpenRouter's convention, and suffixes of the model's name.
 * Both are followed here, and passed on to an upstream that is itself a router.
 */
import {
  type AnyModel,
  type Catalogue,
  type Endpoint,
  PRIVATE_PREFIX,
  QUANTIZATIONS,
  type TokenPricedModel,
  toSlug,
} from '#catalogue';
import { InvalidRequestError, UpstreamError } from '../errors.ts';

const SORTS = ['price', 'throughput', 'latency', 'exacto'] as const;
export type RoutingSort = (typeof SORTS)[number];

export interface RoutingPreferences {
  /** Whether the caller says anything at all: who does not is charged no more than is listed. */
  readonly isExplicit: boolean;
  /** Slugs of providers. */
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

/** What a model's name stands for. */
export interface ResolvedModel<M extends AnyModel = TokenPricedModel> {
  readonly model: M;
  readonly sort: RoutingSort | undefined;
  /** Web search was asked for by `:online`. */
  readonly online: boolean;
  /** Suffixes that mean nothing here; the upstream gets them with its own name of the model. */
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
 * Finds a model by its id or alias, with or without suffixes. A private one is found by no route that reads what it is sent.
 * @throws InvalidRequestError 404 when there is no such model, or it has no such variant; 400 when it cannot be asked directly
 */
export function resolveModel(name: string, catalogue: Catalogue): ResolvedModel<AnyModel> {
  if (name.startsWith(PRIVATE_PREFIX)) throw new InvalidRequestError(400, PRIVATE_MODEL_MESSAGE, 'model');
  const exactMatch = catalogue.findModel(name);
  if (exactMatch) return { model: exactMatch, sort: undefined, online: false, forwardedSuffix: '' };
  const parts = name.split(':');
  // An id may have a colon of its own: the longest name that is one counts.
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
 * Reads the `provider` object of a request; undefined and null are no preferences. A suffix overrides how it sorts.
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
    throw invalidPreference(field, 'a list of names');
  return value.map(toSlug);
}

function parseFlag(fields: PreferenceFields, field: string, byDefault: boolean): boolean {
  const value = fields[field] ?? byDefault;
  if (typeof value !== 'boolean') throw invalidPreference(field, 'a boolean');
  return value;
}

/** What an object may sort by itself, or among several models; a request names one, so that both mean the same. */
const PARTITIONS: readonly unknown[] = ['model', 'none', null, undefined];

/** A word, or an object that says it with `by`. */
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

/** A number, or the strictest of several percentiles. */
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
    throw invalidPreference(field, 'a number from 0');
  return number;
}

/**
 * A request whose `provider` says what holds for it: a router behind us must not undo what is enforced here, and
 * sorts its providers by the suffix of the name. Most requests stay as they are.
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
  if (typeof requested !== 'object' || Array.isArray(requested)) return body; // routing refuses it
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

/** Over the web application models of the zdr tier are asked only where nothing is kept; over the API the caller says so. */
export function requiresZdr(source: string, { privacy }: Pick<AnyModel, 'privacy'>): boolean {
  return source === 'ui' && privacy === 'zdr';
}

/** A router does not know itself as one of its providers. Undefined when nothing is left to be said. */
export function toProviderPreferences({ routes, slug }: Pick<Endpoint, 'routes' | 'slug'>, provider: unknown): unknown {
  if (!routes || typeof provider !== 'object' || provider === null) return provider;
  const preferences: Record<string, unknown> = { ...provider };
  const isRouterAllowed = listNames(provider as PreferenceFields, 'only').includes(slug);
  for (const field of ['order', 'only', 'ignore']) {
    const names = listNames(preferences, field);
    const otherNames = names.filter((name) => name !== slug);
    // When the router as a whole is allowed, any of its providers is.
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
 * What an upstream answers that was asked for something only it can know: a model with suffixes that mean nothing here, or,
 * where it is a router, providers of its own. When it knows no such thing either, the fault is in the request.
 * @throws UpstreamError
 */
export function mapNotFoundError<A>(
  { model, forwardedSuffix }: ResolvedModel<AnyModel>,
  { routes, slug }: Pick<Endpoint, 'routes' | 'slug'>,
  response: Promise<A>,
): Promise<A> {
  if (forwardedSuffix === '' && !routes) return response;
  return response.catch((error) => {
    if (!(error instanceof UpstreamError) || error.status !== 404) throw error;
    const param = forwardedSuffix === '' ? 'provider' : 'model';
    const reason = forwardedSuffix === '' ? `: ${slug} has none of the providers that are asked for` : '';
    const message = `No endpoints found for ${model.id}${forwardedSuffix}${reason}`;
    throw new UpstreamError('invalid_request', message, { status: 404, param, cause: error });
  });
}
