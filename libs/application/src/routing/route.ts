/** Which endpoints of a model are asked, and in which order: a pure choice that can say why. */
import type { Endpoint, Model } from '#catalogue';
import { priceOf } from '#domain';
import { UnservableRequest } from '../failures.ts';
import type { RoutingWish, Sort } from './wish.ts';

/** How an endpoint does at present. */
export interface Pulse {
  /** Milliseconds to the first token; undefined when nothing is known. */
  readonly latencyMs: number | undefined;
  readonly tokensPerSecond: number | undefined;
  /** It failed a moment ago and is left alone for a while. */
  readonly coolingDown: boolean;
}

export interface RouteRequest {
  readonly model: Model;
  readonly wish: RoutingWish;
  /** Fields of the request that an endpoint may not know. */
  readonly fields: readonly string[];
  readonly usesTools: boolean;
  readonly searchesWeb: boolean;
  pulse(endpoint: Endpoint): Pulse;
}

export interface Route {
  /** At least one; the first is asked first, the others when it fails before its first byte. */
  readonly endpoints: readonly Endpoint[];
  /** Why an endpoint is not asked, by its slug. */
  readonly left: Readonly<Record<string, string>>;
}

/** @throws UnservableRequest 404 when no endpoint is left */
export function routeFor(request: RouteRequest): Route {
  const { model, pulse } = request;
  const wish = enforced(request);
  const left: Record<string, string> = {};
  const able = model.endpoints.filter((endpoint) => {
    const why = objection(endpoint, request, wish);
    if (why !== undefined) left[endpoint.slug] = why;
    return why === undefined;
  });
  if (able.length === 0) {
    const reasons = Object.entries(left).map(([slug, why]) => `${slug} ${why}`);
    throw new UnservableRequest(404, `No endpoints found for ${model.id}: ${reasons.join('; ')}`, 'provider');
  }
  const ranked = able
    .map((endpoint, i) => ({ endpoint, rank: rankOf(endpoint, wish, pulse(endpoint), request), i }))
    .sort((a, b) => compare(a.rank, b.rank) || a.i - b.i)
    .map(({ endpoint }) => endpoint);
  const [first, ...others] = ranked;
  for (const { slug } of wish.allowFallbacks ? [] : others) left[slug] = 'is a fallback, and none are allowed';
  return { endpoints: wish.allowFallbacks ? ranked : [first as Endpoint], left };
}

/** What a model's own rules say overrides what the caller says; zdr stays the caller's. */
function enforced({ model, wish, searchesWeb }: RouteRequest): RoutingWish {
  const { routing } = model;
  if (!routing) return wish;
  const { order = [], only = [], ignore = [], webSearchDropsZdr = false } = routing;
  const rules = order.length + only.length + ignore.length > 0 ? { order, only, ignore } : {};
  return { ...wish, ...rules, zdr: wish.zdr && !(webSearchDropsZdr && searchesWeb) };
}

/** Why an endpoint cannot serve the request; undefined when it can. */
function objection(endpoint: Endpoint, request: RouteRequest, wish: RoutingWish): string | undefined {
  const { slug, zdr, collectsData, quantization, parameters } = endpoint;
  if (wish.only.length > 0 && !wish.only.includes(slug)) return 'is not among those that are allowed';
  if (wish.ignore.includes(slug)) return 'is to be ignored';
  if (wish.zdr && !zdr) return 'retains data';
  if (wish.denyDataCollection && collectsData) return 'collects data';
  if (wish.quantizations.length > 0 && !wish.quantizations.includes(quantization))
    return `is quantized as ${quantization}`;
  if (isAbove(endpoint, wish.maxPrice)) return 'is too expensive';
  if (wish.requireParameters) {
    const unknown = request.fields.find((field) => !parameters.includes(field));
    if (unknown !== undefined) return `does not know ${unknown}`;
  }
  const others = request.model.endpoints.some((each) => each.parameters.includes('tools'));
  if (request.usesTools && others && !parameters.includes('tools')) return 'has no tools';
  return undefined;
}

function isAbove({ rates }: Endpoint, { prompt, completion, request }: RoutingWish['maxPrice']): boolean {
  const usd = (rate: bigint) => Number(rate * rates.marginBasisPoints) / 1e16;
  return (
    usd(rates.input) > (prompt ?? Number.POSITIVE_INFINITY) ||
    usd(rates.output) > (completion ?? Number.POSITIVE_INFINITY) ||
    usd(rates.request) > (request ?? Number.POSITIVE_INFINITY)
  );
}

/** What decides, the most important first; less is better. */
function rankOf(endpoint: Endpoint, wish: RoutingWish, pulse: Pulse, request: RouteRequest): readonly number[] {
  const place = wish.order.indexOf(endpoint.slug);
  const latency = pulse.latencyMs ?? endpoint.latencyMs ?? Number.MAX_VALUE;
  const throughput = pulse.tokensPerSecond ?? endpoint.tokensPerSecond ?? 0;
  const slow = wish.preferredMaxLatency !== undefined && latency > wish.preferredMaxLatency;
  const thin = wish.preferredMinThroughput !== undefined && throughput < wish.preferredMinThroughput;
  const unknown = request.fields.filter((field) => !endpoint.parameters.includes(field)).length;
  const key: Record<Sort, number> = {
    price: priceLevel(endpoint),
    latency,
    throughput: -throughput,
    exacto: -(endpoint.toolReliability ?? 0),
  };
  return [
    Number(pulse.coolingDown),
    place === -1 ? wish.order.length : place,
    Number(slow) + Number(thin),
    wish.sort ? key[wish.sort] : unknown,
    key.price,
  ];
}

/** What a typical use costs, three parts of input to one of output: only good for comparing. */
function priceLevel({ rates }: Endpoint): number {
  const usage = { input: 3_000, cacheRead: 0, cacheWrite: 0, output: 1_000, reasoning: 0 };
  return Number(priceOf(usage, rates).price);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const difference = value - (b[i] as number);
    if (difference !== 0 && !Number.isNaN(difference)) return difference;
  }
  return 0;
}
