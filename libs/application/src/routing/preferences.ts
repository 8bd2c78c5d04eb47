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
  readonly stated: boolean;
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
  stated: false,
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
  readonly passedOn: string;
}

const SORT_OF: ReadonlyMap<string, RoutingSort> = new Map([
  ['nitro', 'throughput'],
  ['floor', 'price'],
  ['exacto', 'exacto'],
]);

const PRIVATE =
  'Private models are only reachable through the local encrypting proxy: see "Private models" in the documentation at /docs';

/**
 * Finds a model by its id or alias, with or without suffixes. A private one is found by no route that reads what it is sent.
 * @throws InvalidRequestError 404 when there is no such model, or it has no such variant; 400 when it cannot be asked directly
 */
export function resolveModel(name: string, catalogue: Catalogue): ResolvedModel<AnyModel> {
  if (name.startsWith(PRIVATE_PREFIX)) throw new InvalidRequestError(400, PRIVATE, 'model');
  const whole = catalogue.findModel(name);
  if (whole) return { model: whole, sort: undefined, online: false, passedOn: '' };
  const parts = name.split(':');
  // An id may have a colon of its own: the longest name that is one counts.
  const length = parts.findLastIndex((_, i) => catalogue.findModel(parts.slice(0, i + 1).join(':')) !== undefined) + 1;
  let model = catalogue.findModel(parts.slice(0, length).join(':'));
  if (!model) throw new InvalidRequestError(404, `The model "${name}" does not exist`, 'model');
  const suffixes = parts.slice(length);
  let sort: RoutingSort | undefined;
  let online = false;
  let passedOn = '';
  for (const suffix of suffixes) {
    if (suffix === 'online') online = true;
    else if (SORT_OF.has(suffix)) sort = SORT_OF.get(suffix);
    else if (suffix === 'thinking' || suffix === 'extended') model = variantOf(model, suffix, name, catalogue);
    else passedOn += `:${suffix}`;
  }
  return { model, sort, online, passedOn };
}

function variantOf(model: AnyModel, suffix: 'thinking' | 'extended', name: string, catalogue: Catalogue): AnyModel {
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
    return suffix ? { ...NO_PREFERENCES, stated: true, sort: suffix } : NO_PREFERENCES;
  if (typeof provider !== 'object' || Array.isArray(provider)) throw wrong('provider', 'an object');
  const fields = provider as Readonly<Record<string, unknown>>;
  const sort = sortIn(fields.sort);
  const dataCollection = fields.data_collection ?? 'allow';
  if (dataCollection !== 'allow' && dataCollection !== 'deny') throw wrong('data_collection', 'allow or deny');
  return {
    stated: suffix !== undefined || Object.values(fields).some((value) => (value ?? null) !== null),
    order: slugs(fields, 'order'),
    only: slugs(fields, 'only'),
    ignore: slugs(fields, 'ignore'),
    sort: suffix ?? sort,
    zdr: flag(fields, 'zdr', false),
    denyDataCollection: dataCollection === 'deny',
    quantizations: quantizationsIn(fields.quantizations),
    maxPrice: maxPriceIn(fields.max_price),
    preferredMaxLatency: preference(fields, 'preferred_max_latency', 1_000),
    preferredMinThroughput: preference(fields, 'preferred_min_throughput', 1),
    requireParameters: flag(fields, 'require_parameters', false),
    allowFallbacks: flag(fields, 'allow_fallbacks', true),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function wrong(field: string, must: string): InvalidRequestError {
  const name = field === 'provider' ? field : `provider.${field}`;
  return new InvalidRequestError(400, `${name} must be ${must}`, name);
}

function slugs(fields: Fields, field: string): readonly string[] {
  const value = fields[field] ?? [];
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) throw wrong(field, 'a list of names');
  return value.map(toSlug);
}

function flag(fields: Fields, field: string, byDefault: boolean): boolean {
  const value = fields[field] ?? byDefault;
  if (typeof value !== 'boolean') throw wrong(field, 'a boolean');
  return value;
}

/** What an object may sort by itself, or among several models; a request names one, so that both mean the same. */
const PARTITIONS: readonly unknown[] = ['model', 'none', null, undefined];

/** A word, or an object that says it with `by`. */
function sortIn(value: unknown): RoutingSort | undefined {
  if (typeof value === 'object' && !PARTITIONS.includes((value as { partition?: unknown } | null)?.partition))
    throw wrong('sort.partition', 'model or none');
  const word = typeof value === 'object' && value !== null ? (value as { by?: unknown }).by : value;
  if (word === undefined || word === null) return undefined;
  if (!SORTS.includes(word as RoutingSort)) throw wrong('sort', `one of ${SORTS.join(', ')}`);
  return word as RoutingSort;
}

function quantizationsIn(value: unknown): readonly string[] {
  const list = value ?? [];
  const known = Array.isArray(list) && list.every((each) => QUANTIZATIONS.includes(each));
  if (!known) throw wrong('quantizations', `a list of ${QUANTIZATIONS.join(', ')}`);
  return list;
}

function maxPriceIn(value: unknown): RoutingPreferences['maxPrice'] {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw wrong('max_price', 'an object');
  const prices: Partial<Record<'prompt' | 'completion' | 'request', number>> = {};
  for (const field of ['prompt', 'completion', 'request'] as const) {
    const price = (value as Fields)[field];
    if (price === undefined || price === null) continue;
    prices[field] = numberIn(price, `max_price.${field}`);
  }
  return prices;
}

/** A number, or the strictest of several percentiles. */
function preference(fields: Fields, field: string, unit: number): number | undefined {
  const value = fields[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') return numberIn(value, field) * unit;
  const given = Object.values(value as Fields).filter((each) => each !== undefined && each !== null);
  const numbers = given.map((each) => numberIn(each, field));
  if (numbers.length === 0) return undefined;
  return (field === 'preferred_max_latency' ? Math.min(...numbers) : Math.max(...numbers)) * unit;
}

function numberIn(value: unknown, field: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number) || number < 0) throw wrong(field, 'a number from 0');
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
  const given = body.provider ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) return body; // routing refuses it
  const { webSearchDropsZdr = false, ...rules } = routing ?? {};
  const enforced: Record<string, unknown> = { ...given };
  if (Object.values(rules).some((names) => names.length > 0)) {
    for (const field of ['order', 'only', 'ignore']) delete enforced[field];
    Object.assign(enforced, rules);
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
  const said: Record<string, unknown> = { ...provider };
  const meant = namesIn(provider as Fields, 'only').includes(slug);
  for (const field of ['order', 'only', 'ignore']) {
    const names = namesIn(said, field);
    const others = names.filter((name) => name !== slug);
    // When the router as a whole is allowed, any of its providers is.
    if (names.length > 0 && (others.length === 0 || (field === 'only' && meant))) delete said[field];
    else if (others.length < names.length) said[field] = others;
  }
  return Object.keys(said).length > 0 ? said : undefined;
}

function namesIn(fields: Fields, field: string): readonly string[] {
  const names = fields[field];
  return Array.isArray(names) ? names.map(String).map(toSlug) : [];
}

/**
 * What an upstream answers that was asked for something only it can know: a model with suffixes that mean nothing here, or,
 * where it is a router, providers of its own. When it knows no such thing either, the fault is in the request.
 * @throws UpstreamError
 */
export function mapNotFoundError<A>(
  { model, passedOn }: ResolvedModel<AnyModel>,
  { routes, slug }: Pick<Endpoint, 'routes' | 'slug'>,
  answer: Promise<A>,
): Promise<A> {
  if (passedOn === '' && !routes) return answer;
  return answer.catch((error) => {
    if (!(error instanceof UpstreamError) || error.status !== 404) throw error;
    const param = passedOn === '' ? 'provider' : 'model';
    const why = passedOn === '' ? `: ${slug} has none of the providers that are asked for` : '';
    const message = `No endpoints found for ${model.id}${passedOn}${why}`;
    throw new UpstreamError('invalid_request', message, { status: 404, param, cause: error });
  });
}
