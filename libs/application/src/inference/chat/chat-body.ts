/** The fields of a chat request that the gateway reads, and the request that a provider gets. */
import {
  calculateListPrice,
  EFFORTS,
  type Effort,
  type Endpoint,
  isRejectedWithReasoning,
  LIST_PRICE_TOKENS,
  supportsEffort,
} from '#catalogue';
import type { Tariff, Usage } from '#domain';
import { isJsonObject, toUsdJsonNumber } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { toProviderPreferences } from '../../routing/preferences.ts';
import { MAX_TOKENS_PER_IMAGE } from './max-image-tokens.ts';

type ReasoningFields = Readonly<Record<string, unknown>>;

/** A chat request in OpenAI's format. Any other field is parsed where it is used, or only forwarded. */
export interface ChatBody {
  readonly model: string;
  /** Models that serve the request if those before them cannot. */
  readonly models?: readonly string[] | null;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly n?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly response_format?: unknown;
  readonly [field: string]: unknown;
}

/** Alternative names of the output limit and of reasoning options, which are sent under one name each. */
const RENAMED_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'max_completion_tokens',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
]);

/** Returns the caller's limit of output tokens per choice; undefined if the request has none. */
export function getRequestedMaxTokens({ max_completion_tokens, max_tokens }: ChatBody): number | undefined {
  return max_completion_tokens ?? max_tokens ?? undefined;
}

/**
 * Creates the request for an endpoint, with only the parameters that the endpoint supports. Other fields are for the
 * gateway, or the provider would reject them. A stream always requests usage. The output limit is sent as OpenAI's
 * `max_completion_tokens` and reasoning as OpenRouter's object; connectors convert both to their provider's format.
 * @param limit maximum output tokens per choice; undefined for the model's maximum
 */
export function toUpstreamBody(
  body: ChatBody,
  endpoint: Pick<Endpoint, 'model' | 'parameters' | 'routes' | 'modelRules' | 'slug' | 'tariff'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { model } = endpoint;
  const parameters = listUsableParameters(endpoint, reasoning);
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

/**
 * Returns the parameters that an endpoint supports together with these reasoning settings. Without settings the model
 * may reason.
 */
export function listUsableParameters(
  { parameters, modelRules }: Pick<Endpoint, 'parameters' | 'modelRules'>,
  reasoning: Reasoning | undefined,
): readonly string[] {
  if (modelRules.sampling === undefined || (disablesReasoning(reasoning) && supportsEffort(modelRules, 'none')))
    return parameters;
  return parameters.filter((parameter) => !isRejectedWithReasoning(modelRules, parameter));
}

/** Whether the settings disable reasoning. A model that always reasons then reasons as little as it can. */
export function disablesReasoning({ effort, enabled, max_tokens }: Reasoning = {}): boolean {
  return enabled === false || max_tokens === 0 || (max_tokens === undefined && effort === 'none');
}

/** Returns the requested effort, `none` if reasoning is disabled; undefined if the settings name none. */
export function getRequestedEffort(reasoning: Reasoning = {}): Effort | undefined {
  if (disablesReasoning(reasoning)) return 'none';
  return reasoning.max_tokens === undefined ? reasoning.effort : undefined;
}

/** Whether messages, their parts or tools are marked to be cached for an hour (Anthropic's `cache_control`). */
export function requestsHourCache({ messages, tools }: Pick<ChatBody, 'messages' | 'tools'>): boolean {
  return (
    messages.some((message) => isCachedForHour(message) || toList(message.content).some(isCachedForHour)) ||
    toList(tools).some(isCachedForHour)
  );
}

function isCachedForHour(marked: unknown): boolean {
  return isJsonObject(marked) && isJsonObject(marked.cache_control) && marked.cache_control.ttl === '1h';
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether `tool_choice` requires a call of a tool of the request. */
export function requiresToolCall({ tools, tool_choice: choice }: ChatBody): boolean {
  if (!tools?.length) return false;
  if (typeof choice !== 'object' || choice === null) return choice === 'required';
  const { type, allowed_tools } = choice as { readonly type?: unknown; readonly allowed_tools?: { mode?: unknown } };
  return type !== 'allowed_tools' || allowed_tools?.mode === 'required';
}

/**
 * Whether the model is to continue the text of the assistant. Instructions after it, and empty messages, do not count,
 * nor do turns with searches of the provider, which every model continues.
 */
export function endsWithAssistant({ messages }: ChatBody): boolean {
  const last = messages.findLast(({ role, content, tool_calls }) => {
    if (role === 'system' || role === 'developer') return false;
    return role !== 'assistant' || hasEntries(content) || hasEntries(tool_calls);
  });
  return last?.role === 'assistant' && last.content_blocks === undefined;
}

/** Whether a text or a list is not empty. */
function hasEntries(value: unknown): boolean {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}

/** OpenRouter's object for provider preferences. */
const ROUTING = 'provider';

/**
 * Combines the caller's preferences with the highest price that the router may pay: the cost in the catalogue. Prices
 * of a router's providers differ by several times, and the caller may select a provider by name, speed or quantisation.
 * https://openrouter.ai/docs/features/provider-routing
 */
function createRouting(endpoint: Pick<Endpoint, 'routes' | 'slug' | 'tariff'>, provider: unknown): object {
  return {
    ...(toProviderPreferences(endpoint, provider) as object | undefined),
    max_price: getMaxPrices(endpoint.tariff),
  };
}

const MAX_PRICES = new WeakMap<Tariff, object>();

/**
 * Returns the costs in the catalogue, without our margin: in USD per million tokens, per request, and per image. The
 * price of an image that is billed in addition to its tokens must not exceed that of an image's tokens. OpenRouter has
 * no bound for cached tokens.
 */
function getMaxPrices(tariff: Tariff): object {
  const cached = MAX_PRICES.get(tariff);
  if (cached) return cached;
  const getCost = (usage: Usage) => toUsdJsonNumber(calculateListPrice(usage, tariff).cost);
  const maxPrices = {
    prompt: getCost({ input: LIST_PRICE_TOKENS }),
    completion: getCost({ output: LIST_PRICE_TOKENS }),
    request: getCost({ request: 1 }),
    image: getCost({ input: MAX_TOKENS_PER_IMAGE }),
  };
  MAX_PRICES.set(tariff, maxPrices);
  return maxPrices;
}

/**
 * OpenRouter's object: https://openrouter.ai/docs/use-cases/reasoning-tokens. It has at most one of `effort` and
 * `max_tokens`.
 */
export interface Reasoning {
  readonly effort?: Effort;
  readonly max_tokens?: number;
  readonly enabled?: boolean;
  /** The response does not include the reasoning. */
  readonly exclude?: boolean;
}

/**
 * Parses `reasoning` and `reasoning_effort`. `reasoning.max_tokens` takes precedence over any effort, and
 * `reasoning_effort` over `reasoning.effort`.
 * @returns undefined if no option is set
 * @throws InvalidRequestError (400) naming the invalid field
 */
export function parseReasoning({ reasoning, reasoning_effort }: ReasoningFields): Reasoning | undefined {
  if ((reasoning ?? reasoning_effort ?? undefined) === undefined) return undefined;
  if (typeof (reasoning ?? {}) !== 'object' || Array.isArray(reasoning)) throw invalidField('reasoning', 'an object');
  const fields = (reasoning ?? {}) as ReasoningFields;
  const tokens = parseOptional(fields.max_tokens, 'reasoning.max_tokens', 'a non-negative integer', isCount);
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
