/** Selects the endpoints of a model and their order. The selection is a pure function that can explain its result. */
import { type AnyModel, calculateListPrice, type Endpoint, LIST_PRICE_TOKENS, type TokenPricedModel } from '#catalogue';
import { UnpricedUnitError, type Usage } from '#domain';
import { InvalidRequestError } from '../errors.ts';
import { NO_PREFERENCES, type RoutingPreferences, type RoutingSort, requiresZdr } from './preferences.ts';
import {
  describeUnmetRequirement,
  findAdaptedRequirement,
  findUnmetRequirement,
  type RequestRequirements,
} from './request-requirements.ts';

/** The current performance of an endpoint. */
export interface EndpointPerformance {
  /** Milliseconds to the first token; undefined if unknown. */
  readonly latencyMs: number | undefined;
  readonly tokensPerSecond: number | undefined;
  /** The endpoint failed recently and is avoided for a while. */
  readonly isCoolingDown: boolean;
}

/** The fields of a model that routing needs. */
export type RoutableModel = Pick<AnyModel, 'id' | 'endpoints' | 'excludedEndpoints' | 'privacy'> &
  Pick<TokenPricedModel, 'routing'>;

/** What decides which endpoints can serve a request. */
interface EligibilityRequest extends RequestRequirements {
  readonly model: RoutableModel;
  readonly preferences: RoutingPreferences;
  /** Fields of the request for which it matters whether an endpoint supports them. */
  readonly fields: readonly string[];
  readonly usesTools: boolean;
  readonly searchesWeb: boolean;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
}

export interface RouteRequest extends EligibilityRequest {
  /**
   * A number, at least 0 and below 1, that decides between endpoints of equal rank: random, or the same for requests
   * that should get the same endpoint.
   */
  readonly chance: number;
  getPerformance(endpoint: Endpoint): EndpointPerformance;
}

/** Returns the fields of a request that have a value, without those that no model needs to support. */
export function listSetFields(
  body: Readonly<Record<string, unknown>>,
  ignoredFields: ReadonlySet<string>,
): readonly string[] {
  return Object.keys(body).filter((field) => (body[field] ?? null) !== null && !ignoredFields.has(field));
}

export interface SelectedRoute {
  /** At least one. An endpoint is called only if all endpoints before it failed before their first byte. */
  readonly endpoints: readonly Endpoint[];
  /** Why an endpoint is not called, by slug. */
  readonly exclusionReasons: Readonly<Record<string, string>>;
  /** How the first endpoint was chosen, if several rank equally. */
  readonly loadShares: LoadShares | undefined;
  /** Only endpoints with zero data retention are called. */
  readonly zdr: boolean;
}

/** Shares of the load by slug, in the order in which `chance` selects them. They add up to 1. */
export interface LoadShares {
  readonly chance: number;
  readonly shares: Readonly<Record<string, number>>;
}

const PICO_USD_PER_USD = 1e12;

/** Prices up to this multiple of the lowest count as equal to it. */
const EQUAL_PRICE_FACTOR = 1.1;

const NOT_LISTED = 'costs more than the listed price of the model, and the request has no provider preferences';

/**
 * Selects the endpoints for a request.
 * @throws InvalidRequestError if no endpoint remains: 400 if one was excluded for a requirement that the caller can
 *   change, such as several choices, else 404
 */
export function selectRoute(request: RouteRequest): SelectedRoute {
  const { model, getPerformance } = request;
  const preferences = applyModelRules(request);
  const exclusionReasons: Record<string, string> = { ...model.excludedEndpoints };
  const capable = model.endpoints.filter((endpoint) => {
    const reason = findExclusionReason(endpoint, request, preferences);
    if (reason !== undefined) exclusionReasons[endpoint.slug] = reason;
    return reason === undefined;
  });
  if (capable.length === 0) throw createNoEndpointsError(model, preferences, exclusionReasons);
  const candidates = preferences.isExplicit ? capable : selectCheapest(capable);
  for (const { slug } of capable)
    if (!candidates.some((candidate) => candidate.slug === slug)) exclusionReasons[slug] = NOT_LISTED;
  const { zdr } = preferences;
  if (candidates.length === 1) return { endpoints: candidates, exclusionReasons, loadShares: undefined, zdr };
  const ranked = candidates
    .map((endpoint, i) => ({ endpoint, rank: getRank(endpoint, preferences, getPerformance(endpoint), request), i }))
    .sort((a, b) => compareRanks(a.rank, b.rank) || a.i - b.i);
  const loadShares = calculateLoadShares(ranked, preferences, request.chance);
  const inOrder = ranked.map(({ endpoint }) => endpoint);
  const endpoints = loadShares ? moveChosenFirst(inOrder, loadShares) : inOrder;
  // Without fallbacks, only the endpoints of the order may be called or, without an order, the first endpoint.
  if (preferences.allowFallbacks || preferences.order.length > 0)
    return { endpoints, exclusionReasons, loadShares, zdr };
  for (const { slug } of endpoints.slice(1)) exclusionReasons[slug] = 'is a fallback, and fallbacks are not allowed';
  return { endpoints: endpoints.slice(0, 1), exclusionReasons, loadShares, zdr };
}

/**
 * Returns the endpoints for a request without provider preferences. Their prices are listed as the prices of the model.
 * @returns an empty list if no endpoint that the model's rules allow is available here
 */
export function selectDefaultEndpoints(model: RoutableModel): readonly Endpoint[] {
  const requestDefaults = { fields: [], usesTools: false, searchesWeb: false, source: 'api' };
  const request = { ...requestDefaults, model, preferences: NO_PREFERENCES };
  const preferences = applyModelRules(request);
  const capable = model.endpoints.filter(
    (endpoint) => findExclusionReason(endpoint, request, preferences) === undefined,
  );
  return preferences.isExplicit ? capable : selectCheapest(capable);
}

function selectCheapest(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.length < 2) return endpoints;
  const maxLevel = Math.min(...endpoints.map(getPriceLevel)) * EQUAL_PRICE_FACTOR;
  return endpoints.filter((endpoint) => getPriceLevel(endpoint) <= maxLevel);
}

function createNoEndpointsError(
  model: RoutableModel,
  { order, only }: RoutingPreferences,
  exclusionReasons: Readonly<Record<string, string>>,
): InvalidRequestError {
  const reasons = Object.entries(exclusionReasons).map(([slug, reason]) => `${slug} ${reason}`);
  const unmet = describeUnmetRequirement(model.endpoints, exclusionReasons);
  if (unmet) {
    const { param, requirement } = unmet;
    return new InvalidRequestError(400, `${param} ${requirement} for ${model.id}: ${reasons.join('; ')}`, param);
  }
  const unknown = [...new Set([...order, ...only])].filter((name) => isUnknown(name, model));
  const all = [...reasons, ...unknown.map((name) => `${name} does not serve this model`)];
  return new InvalidRequestError(404, `No endpoints found for ${model.id}: ${all.join('; ')}`, 'provider');
}

interface Ranked {
  readonly endpoint: Endpoint;
  readonly rank: readonly number[];
}

/**
 * Calculates the load shares of endpoints that rank equally and have similar prices. Each share is proportional to the
 * inverse square of the price, as at OpenRouter.
 * @returns undefined if there are fewer than two such endpoints, or an order or a sort decides
 */
function calculateLoadShares(
  ranked: readonly Ranked[],
  preferences: RoutingPreferences,
  chance: number,
): LoadShares | undefined {
  const [first] = ranked;
  if (first === undefined || ranked.length < 2 || preferences.sort !== undefined || preferences.order.length > 0)
    return undefined;
  const lowestPrice = first.rank.at(-1) as number;
  const isEqual = ({ rank }: Ranked) =>
    compareRanks(rank.slice(0, -1), first.rank) === 0 && (rank.at(-1) as number) <= lowestPrice * EQUAL_PRICE_FACTOR;
  const equals = ranked.filter(isEqual);
  if (equals.length < 2) return undefined;
  const weights = equals.map(({ rank }) => (lowestPrice === 0 ? 1 : (lowestPrice / (rank.at(-1) as number)) ** 2));
  const total = weights.reduce((sum, weight) => sum + weight);
  const shares = equals.map(({ endpoint }, i) => [endpoint.slug, (weights[i] as number) / total] as const);
  return { chance, shares: Object.fromEntries(shares) };
}

/** Moves the chosen endpoint to the front; the others stay in their order. */
function moveChosenFirst(endpoints: readonly Endpoint[], { chance, shares }: LoadShares): readonly Endpoint[] {
  let upTo = 0;
  const chosen = Object.entries(shares).find(([, share]) => {
    upTo += share;
    return chance < upTo;
  });
  const first = endpoints.find(({ slug }) => slug === chosen?.[0]) ?? endpoints[0];
  return [first as Endpoint, ...endpoints.filter((endpoint) => endpoint !== first)];
}

/**
 * Applies the model's own rules, which override the caller's preferences. `zdr` applies if the caller or the source of
 * the request requires it, unless the model drops it for web searches.
 */
function applyModelRules({ model, preferences, searchesWeb, source }: EligibilityRequest): RoutingPreferences {
  const zdr = preferences.zdr || requiresZdr(source, model);
  const { routing } = model;
  if (!routing) return { ...preferences, zdr };
  const { order = [], only = [], ignore = [], webSearchDropsZdr = false } = routing;
  const overrides = order.length + only.length + ignore.length > 0 ? { isExplicit: true, order, only, ignore } : {};
  return { ...preferences, ...overrides, zdr: zdr && !(webSearchDropsZdr && searchesWeb) };
}

/** Returns why an endpoint cannot serve the request; undefined if it can. */
function findExclusionReason(
  endpoint: Endpoint,
  request: EligibilityRequest,
  preferences: RoutingPreferences,
): string | undefined {
  const { slug, zdr, collectsData, quantization, parameters } = endpoint;
  const { only, order, allowFallbacks } = preferences;
  if (only.length > 0 && !isNamed(endpoint, only, request.model)) return 'is not one of the allowed providers';
  if (!allowFallbacks && order.length > 0 && !isNamed(endpoint, order, request.model))
    return 'is not in the order, and fallbacks are not allowed';
  if (preferences.ignore.includes(slug)) return 'is ignored';
  if (preferences.zdr && !zdr) return 'retains data';
  if (preferences.denyDataCollection && collectsData) return 'collects data';
  if (preferences.quantizations.length > 0 && !preferences.quantizations.includes(quantization))
    return `is quantized as ${quantization}`;
  if (isTooExpensive(endpoint, preferences.maxPrice)) return 'is too expensive';
  if (preferences.requireParameters) {
    const unknown = request.fields.find((field) => !parameters.includes(field));
    if (unknown !== undefined) return `does not support ${unknown}`;
    const adapted = findAdaptedRequirement(endpoint, request, request.fields);
    if (adapted !== undefined) return adapted;
  }
  const hasToolEndpoint = request.model.endpoints.some((candidate) => candidate.parameters.includes('tools'));
  if (request.usesTools && hasToolEndpoint && !parameters.includes('tools')) return 'does not support tools';
  return findUnmetRequirement(endpoint, request);
}

/** Whether a list of provider names includes an endpoint. A name that is unknown here may be a provider of a router. */
function isNamed({ slug, routes }: Endpoint, names: readonly string[], model: RoutableModel): boolean {
  return names.includes(slug) || (routes === true && names.some((name) => isUnknown(name, model)));
}

function isUnknown(name: string, { endpoints, excludedEndpoints = {} }: RoutableModel): boolean {
  return !endpoints.some(({ slug }) => slug === name) && !Object.hasOwn(excludedEndpoints, name);
}

function isTooExpensive(
  { tariff }: Endpoint,
  { prompt, completion, request }: RoutingPreferences['maxPrice'],
): boolean {
  const toUsd = (usage: Usage) => Number(getListPriceOrZero(usage, tariff)) / PICO_USD_PER_USD;
  return (
    (prompt !== undefined && toUsd({ input: LIST_PRICE_TOKENS }) > prompt) ||
    (completion !== undefined && toUsd({ output: LIST_PRICE_TOKENS }) > completion) ||
    (request !== undefined && toUsd({ request: 1 }) > request)
  );
}

/** Returns the list price of a usage; 0 if the tariff has no price for its unit. */
function getListPriceOrZero(usage: Usage, tariff: Endpoint['tariff']): bigint {
  try {
    return calculateListPrice(usage, tariff).price;
  } catch (error) {
    if (error instanceof UnpricedUnitError) return 0n;
    throw error;
  }
}

/** Returns the ranking criteria, the most important first; lower is better. */
function getRank(
  endpoint: Endpoint,
  preferences: RoutingPreferences,
  health: EndpointPerformance,
  request: RouteRequest,
): readonly number[] {
  const orderIndex = preferences.order.indexOf(endpoint.slug);
  const latency = health.latencyMs ?? endpoint.latencyMs ?? Number.MAX_VALUE;
  const throughput = health.tokensPerSecond ?? endpoint.tokensPerSecond ?? 0;
  const isSlow = preferences.preferredMaxLatency !== undefined && latency > preferences.preferredMaxLatency;
  const hasLowThroughput =
    preferences.preferredMinThroughput !== undefined && throughput < preferences.preferredMinThroughput;
  const unknown = request.fields.filter((field) => !endpoint.parameters.includes(field)).length;
  const key: Record<RoutingSort, number> = {
    price: getPriceLevel(endpoint),
    latency,
    throughput: -throughput,
    exacto: -(endpoint.toolReliability ?? 0),
  };
  return [
    Number(health.isCoolingDown),
    orderIndex === -1 ? preferences.order.length : orderIndex,
    Number(isSlow) + Number(hasLowThroughput),
    preferences.sort ? key[preferences.sort] : unknown,
    key.price,
  ];
}

const priceLevels = new WeakMap<Endpoint, number>();

/**
 * Returns the price of a typical usage, only for comparisons. For tokens it has three parts of input to one of output.
 */
function getPriceLevel(endpoint: Endpoint): number {
  let level = priceLevels.get(endpoint);
  if (level === undefined) {
    const { tariff } = endpoint;
    const [first] = tariff.prices;
    const typical =
      first?.unit === 'input' ? { input: 3_000, output: 1_000, request: 1 } : { [first?.unit ?? '']: 1_000 };
    level = Number(calculateListPrice(typical, tariff).price);
    priceLevels.set(endpoint, level);
  }
  return level;
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const difference = value - (b[i] as number);
    if (difference !== 0 && !Number.isNaN(difference)) return difference;
  }
  return 0;
}
