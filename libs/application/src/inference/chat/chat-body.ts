/** A chat request: what the gateway reads of it, and what an upstream gets of it. */
import { calculateListPrice, type Endpoint, LIST_PRICE_TOKENS } from '#catalogue';
import type { Tariff } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { toProviderPreferences } from '../../routing/preferences.ts';

type ReasoningFields = Readonly<Record<string, unknown>>;

/** A chat request in OpenAI's shape, as far as the gateway reads it; the rest passes through. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly n?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly response_format?: unknown;
  readonly [field: string]: unknown;
}

/** Fields that clients have several names for. */
const RENAMED_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'max_completion_tokens',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
]);

/** The caller's own limit on output tokens of one choice, if there is one. */
export function getRequestedMaxTokens({ max_completion_tokens, max_tokens }: ChatBody): number | undefined {
  return max_completion_tokens ?? max_tokens ?? undefined;
}

/**
 * The request for an upstream: the fields that it knows; all others are ours, or would be refused. Usage is always
 * asked for. The limit goes by OpenAI's present name and reasoning as OpenRouter's object, whatever the caller called
 * them: connectors say it in their upstream's words.
 * @param limit output tokens per choice at most; undefined for as many as the model makes
 */
export function toUpstreamBody(
  body: ChatBody,
  endpoint: Pick<Endpoint, 'model' | 'parameters' | 'routes' | 'slug' | 'tariff'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { model, parameters } = endpoint;
  const sent: Record<string, unknown> = { model, messages: body.messages };
  for (const field of parameters) {
    const value = body[field];
    if (value !== undefined && value !== null && !RENAMED_FIELDS.has(field)) sent[field] = value;
  }
  if (parameters.includes(ROUTING)) sent[ROUTING] = createRouting(endpoint, sent[ROUTING]);
  if (limit !== undefined) sent.max_completion_tokens = limit;
  if (reasoning !== undefined && parameters.includes('reasoning')) sent.reasoning = reasoning;
  if (body.stream) {
    sent.stream = true;
    sent.stream_options = { include_usage: true };
  }
  return sent;
}

/** What a router is told about its providers. */
const ROUTING = 'provider';

/**
 * What the caller wishes, at no price that is above ours: a router's providers differ by several times, and may be chosen by
 * name, speed or quantization. https://openrouter.ai/docs/features/provider-routing
 */
function createRouting(endpoint: Pick<Endpoint, 'routes' | 'slug' | 'tariff'>, provider: unknown): object {
  return {
    ...(toProviderPreferences(endpoint, provider) as object | undefined),
    max_price: getMaxPrices(endpoint.tariff),
  };
}

const MAX_PRICES = new WeakMap<Tariff, object>();

/** USD for a million tokens, as the model is sold: what it costs may be that much and no more. */
function getMaxPrices(tariff: Tariff): object {
  const cached = MAX_PRICES.get(tariff);
  if (cached) return cached;
  const getPrice = (unit: 'input' | 'output') =>
    toUsdJsonNumber(calculateListPrice({ [unit]: LIST_PRICE_TOKENS }, tariff).price);
  const maxPrices = { prompt: getPrice('input'), completion: getPrice('output') };
  MAX_PRICES.set(tariff, maxPrices);
  return maxPrices;
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
type Effort = (typeof EFFORTS)[number];

/** OpenRouter's object: https://openrouter.ai/docs/use-cases/reasoning-tokens. Of effort and tokens there is one at most. */
export interface Reasoning {
  readonly effort?: Effort;
  readonly max_tokens?: number;
  readonly enabled?: boolean;
  /** Nothing of it is shown. */
  readonly exclude?: boolean;
}

/**
 * Reads `reasoning` and `reasoning_effort`; undefined when neither says anything. A number of tokens says more than a word.
 * @throws InvalidRequestError 400 that names the field
 */
export function parseReasoning({ reasoning, reasoning_effort }: ReasoningFields): Reasoning | undefined {
  if ((reasoning ?? reasoning_effort ?? undefined) === undefined) return undefined;
  if (typeof (reasoning ?? {}) !== 'object' || Array.isArray(reasoning)) throw invalidField('reasoning', 'an object');
  const fields = (reasoning ?? {}) as ReasoningFields;
  const tokens = parseOptional(fields.max_tokens, 'reasoning.max_tokens', 'a whole number from 0', isCount);
  const rawEffort = reasoning_effort ?? undefined;
  const effort =
    parseOptional(rawEffort, 'reasoning_effort', `one of ${EFFORTS.join(', ')}`, isEffort) ??
    parseOptional(fields.effort, 'reasoning.effort', `one of ${EFFORTS.join(', ')}`, isEffort);
  const enabled = parseOptional(fields.enabled, 'reasoning.enabled', 'a boolean', isFlag);
  const exclude = parseOptional(fields.exclude, 'reasoning.exclude', 'a boolean', isFlag);
  const requested: Reasoning = {
    ...(tokens === undefined ? {} : { max_tokens: tokens }),
    ...(effort === undefined || tokens !== undefined ? {} : { effort }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(exclude === undefined ? {} : { exclude }),
  };
  return Object.keys(requested).length === 0 ? undefined : requested;
}

function parseOptional<T>(
  value: unknown,
  field: string,
  requirement: string,
  isValid: (value: unknown) => value is T,
): T | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isValid(value)) throw invalidField(field, requirement);
  return value;
}

const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isEffort = (value: unknown): value is Effort => EFFORTS.includes(value as Effort);

function invalidField(field: string, requirement: string): InvalidRequestError {
  return new InvalidRequestError(400, `${field} must be ${requirement}`, field);
}
