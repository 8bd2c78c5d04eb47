/** Which endpoints of a model are asked, and in which order: a pure choice that can say why. */
import { type AnyModel, calculateListPrice, type Endpoint, LIST_PRICE_TOKENS, type TokenPricedModel } from '#catalogue';
import { UnpricedUnitError, type Usage } from '#domain';
import { InvalidRequestError } from '../errors.ts';
import { NO_PREFERENCES, type RoutingPreferences, type RoutingSort, requiresZdr } from './preferences.ts';

/** The present performance of an endpoint. */
export interface EndpointPerformance {
  /** Milliseconds to the first token; undefined when nothing is known. */
  readonly latencyMs: number | undefined;
  readonly tokensPerSecond: number | undefined;
  /** It failed a moment ago and is avoided for a while. */
  readonly isCoolingDown: boolean;
}

/** A model as far as its endpoints are chosen by it. */
export type RoutableModel = Pick<AnyModel, 'id' | 'endpoints' | 'excludedEndpoints' | 'privacy'> &
  Pick<TokenPricedModel, 'routing'>;

/** What decides who is able to serve a request. */
interface EligibilityRequest {
  readonly model: RoutableModel;
  readonly preferences: RoutingPreferences;
  /** Fields of the request that an endpoint may not know. */
  readonly fields: readonly string[];
  readonly usesTools: boolean;
  /** How many answers are wanted; one, where it is omitted. */
  readonly choices?: number;
  readonly searchesWeb: boolean;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
}

export interface RouteRequest extends EligibilityRequest {
  /** From 0 to below 1, by chance: it decides between endpoints that rank equal. */
  readonly randomValue: number;
  getPerformance(endpoint: Endpoint): EndpointPerformance;
}

/** The fields that a request has a value for, without those that no model needs to support. */
export function listSetFields(
  body: Readonly<Record<string, unknown>>,
  ignoredFields: ReadonlySet<string>,
): readonly string[] {
  return Object.keys(body).filter((field) => (body[field] ?? null) !== null && !ignoredFields.has(field));
}

export interface SelectedRoute {
  /** At least one; the first is asked first, the others when it fails before its first byte. */
  readonly endpoints: readonly Endpoint[];
  /** Why an endpoint is not asked, by its slug. */
  readonly exclusionReasons: Readonly<Record<string, string>>;
  /** How the first one was drawn, where several rank equal. */
  readonly loadShares: LoadShares | undefined;
  /** Only those that keep nothing are asked. */
  readonly zdr: boolean;
}

/** Shares of the load by slug, which add up to 1, in the order in which chance meets them. */
export interface LoadShares {
  readonly chance: number;
  readonly shares: Readonly<Record<string, number>>;
}

const PICO_USD_PER_USD = 1e12;

/** Prices up to so many times the cheapest count as equal to it. */
const EQUAL_PRICE_FACTOR = 1.1;

/** The only objection that the caller overcomes by asking for less, and not by asking another. */
const ONE_CHOICE = 'gives one choice';
const NOT_LISTED = 'is dearer than the model is listed at, and nothing was said of providers';

/**
 * @throws InvalidRequestError 404 when no endpoint is left; 400 where that is for want of one that gives several choices
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
  const loadShares = calculateLoadShares(ranked, preferences, request.randomValue);
  const inOrder = ranked.map(({ endpoint }) => endpoint);
  const endpoints = loadShares ? moveChosenFirst(inOrder, loadShares) : inOrder;
  // Without fallbacks those that the caller has listed are asked, in their order, or else the first one alone.
  if (preferences.allowFallbacks || preferences.order.length > 0)
    return { endpoints, exclusionReasons, loadShares, zdr };
  for (const { slug } of endpoints.slice(1)) exclusionReasons[slug] = 'is a fallback, and none are allowed';
  return { endpoints: endpoints.slice(0, 1), exclusionReasons, loadShares, zdr };
}

/**
 * The endpoints that a request is served by that says nothing of providers: their prices are listed as the model's. None
 * where no endpoint that the model's rules allow can be had here.
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
  if (Object.values(exclusionReasons).includes(ONE_CHOICE))
    return new InvalidRequestError(400, `n must be 1 for ${model.id}: ${reasons.join('; ')}`, 'n');
  const unknown = [...new Set([...order, ...only])].filter((name) => isUnknown(name, model));
  const all = [...reasons, ...unknown.map((name) => `${name} does not have it`)];
  return new InvalidRequestError(404, `No endpoints found for ${model.id}: ${all.join('; ')}`, 'provider');
}

interface Ranked {
  readonly endpoint: Endpoint;
  readonly rank: readonly number[];
}

/**
 * Endpoints that differ by little but their price share the load, each by the inverse square of its price, as
 * OpenRouter does it. An order or a sort of the caller's decides which is first.
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

/** The others stay in their order. */
function moveChosenFirst(endpoints: readonly Endpoint[], { chance, shares }: LoadShares): readonly Endpoint[] {
  let upTo = 0;
  const chosen = Object.entries(shares).find(([, share]) => {
    upTo += share;
    return chance < upTo;
  });
  const first = endpoints.find(({ slug }) => slug === chosen?.[0]) ?? endpoints[0];
  return [first as Endpoint, ...endpoints.filter((endpoint) => endpoint !== first)];
}

/** What a model's own rules say overrides what the caller says; zdr stays the caller's. */
function applyModelRules({ model, preferences, searchesWeb, source }: EligibilityRequest): RoutingPreferences {
  const zdr = preferences.zdr || requiresZdr(source, model);
  const { routing } = model;
  if (!routing) return { ...preferences, zdr };
  const { order = [], only = [], ignore = [], webSearchDropsZdr = false } = routing;
  const overrides = order.length + only.length + ignore.length > 0 ? { isExplicit: true, order, only, ignore } : {};
  return { ...preferences, ...overrides, zdr: zdr && !(webSearchDropsZdr && searchesWeb) };
}

/** Why an endpoint cannot serve the request; undefined when it can. */
function findExclusionReason(
  endpoint: Endpoint,
  request: EligibilityRequest,
  preferences: RoutingPreferences,
): string | undefined {
  const { slug, zdr, collectsData, quantization, parameters, speaks } = endpoint;
  const { only, order, allowFallbacks } = preferences;
  if (only.length > 0 && !isNamed(endpoint, only, request.model)) return 'is not among those that are allowed';
  if (!allowFallbacks && order.length > 0 && !isNamed(endpoint, order, request.model))
    return 'is not in the order, and no fallbacks are allowed';
  if (preferences.ignore.includes(slug)) return 'is to be ignored';
  if (preferences.zdr && !zdr) return 'retains data';
  if (preferences.denyDataCollection && collectsData) return 'collects data';
  if (preferences.quantizations.length > 0 && !preferences.quantizations.includes(quantization))
    return `is quantized as ${quantization}`;
  if (isTooExpensive(endpoint, preferences.maxPrice)) return 'is too expensive';
  if (preferences.requireParameters) {
    const unknown = request.fields.find((field) => !parameters.includes(field));
    if (unknown !== undefined) return `does not know ${unknown}`;
  }
  const hasToolEndpoint = request.model.endpoints.some((candidate) => candidate.parameters.includes('tools'));
  if (request.usesTools && hasToolEndpoint && !parameters.includes('tools')) return 'has no tools';
  if ((request.choices ?? 1) > 1 && !(parameters.includes('n') && speaks.includes('chat'))) return ONE_CHOICE;
  return undefined;
}

/** A router behind us may know providers that we do not. */
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

/** 0 where it is not sold by what is asked about. */
function getListPriceOrZero(usage: Usage, tariff: Endpoint['tariff']): bigint {
  try {
    return calculateListPrice(usage, tariff).price;
  } catch (error) {
    if (error instanceof UnpricedUnitError) return 0n;
    throw error;
  }
}

/** The ranking criteria, the most important first; less is better. */
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

/** What a typical use costs, of tokens three parts of input to one of output: only good for comparing. */
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
