/** Models in the format of the data files, with strict validation: a typing error must not make a model free. */
import { type ModelRules, modelRulesRule } from './model-rules.ts';
import {
  amount,
  count,
  countOrZero,
  createDataFileError,
  day,
  enumRule,
  factor,
  flag,
  isText,
  listRule,
  objectRule,
  optionalRule,
  patternRule,
  positive,
  share,
  text,
  texts,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

export type PrivacyLevel = 'anon' | 'zdr' | 'e2e';

export const MODEL_TYPES = ['chat', 'embedding', 'image', 'video', 'audio'] as const;
export type ModelType = (typeof MODEL_TYPES)[number];

export const QUANTIZATIONS = [
  'int4',
  'int8',
  'fp4',
  'mxfp4',
  'nvfp4',
  'fp6',
  'fp8',
  'mxfp8',
  'fp16',
  'bf16',
  'fp32',
  'unknown',
] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

/** What a provider does if the gateway disconnects during a response: it stops billing, or bills the full response. */
export const DISCONNECT_BEHAVIORS = ['stops', 'bills on'] as const;
export type DisconnectBehavior = (typeof DISCONNECT_BEHAVIORS)[number];

/** Where a price was found. */
export interface PriceSource {
  readonly url: string;
  /** When it was found, such as `2026-11-24`. */
  readonly date: string;
}

export const priceSource = objectRule({ url: patternRule('a URL', /^https:\/\//), date: day });

/** A model at one provider. */
export interface OfferFile {
  /** Display name of the provider, such as `OpenAI`. Unique among the endpoints of a model. */
  readonly provider: string;
  /** Slug of the provider that is called. */
  readonly upstream: string;
  /** Name of the model at the called provider. */
  readonly model: string;
  readonly margin: string;
  /** Request fields that the called provider supports, or the name of a list in `parameters.json`. */
  readonly parameters: readonly string[] | string;
  /**
   * Rules of the model, or the name of a set in `model-rules.json`. By default those of the set with the name of the
   * parameter list, if there is one.
   */
  readonly modelRules?: ModelRules | string;
  /** Maximum number of choices per request. Overrides the provider's value. */
  readonly maxChoices?: number;
  /** The called provider is a router: provider names that the catalogue does not have are forwarded to it. */
  readonly routes?: boolean;
  /** First UTC day on which the provider no longer serves the model, such as `2026-12-11`. */
  readonly retires?: string;
  /** Overrides the provider's value. A router's behaviour depends on the provider that serves the request. */
  readonly onDisconnect?: DisconnectBehavior;
  /** The endpoint retains no request data. */
  readonly zdr?: boolean;
  /** The provider may use requests for training. */
  readonly collectsData?: boolean;
  readonly quantization?: Quantization;
  /** Expected time to the first token, used until it has been measured. */
  readonly latencyMs?: number;
  /** Expected output speed, used until it has been measured. */
  readonly tokensPerSecond?: number;
  /** Share of tool calls that are well-formed, from 0 to 1. */
  readonly toolReliability?: number;
  /** Where the prices were found. */
  readonly source?: PriceSource;
}

/** `chat` is OpenAI's Chat Completions or a protocol that is translated from it, `responses` is OpenAI's Responses. */
export const CHAT_PROTOCOLS = ['chat', 'responses'] as const;
export type ChatProtocol = (typeof CHAT_PROTOCOLS)[number];

export type UsdPerMillionTokens = Readonly<Record<'input' | 'output', string>> &
  Readonly<Partial<Record<'cacheRead' | 'cacheWrite' | 'cacheWriteHour' | 'reasoning', string>>>;

/** Prices of all tokens of a call whose input, including cached tokens, is longer than `above` tokens. */
export interface TierFile {
  readonly above: number;
  readonly usdPerMillionTokens: UsdPerMillionTokens;
}

/** An endpoint that is priced by tokens. */
export interface EndpointFile extends OfferFile {
  readonly usdPerMillionTokens: UsdPerMillionTokens;
  /** Prices of long inputs, in ascending order of `above`. */
  readonly tiers?: readonly TierFile[];
  readonly usdPerRequest?: string;
  /** Name of the fee per web search, if the model can search the web by itself on request. */
  readonly searchFee?: string;
  /** The model's own search is used only for requests that demand it with the engine `native`. */
  readonly searchOnRequest?: boolean;
  /** Supported protocols; only `chat` by default. */
  readonly speaks?: readonly ChatProtocol[];
  /** Path of a private model's enclave at its provider; empty if the provider consists of one enclave. */
  readonly enclave?: string;
  /**
   * Bytes of an event of the response stream that are not text. Tokens of encrypted responses are estimated from the
   * rest of the bytes.
   */
  readonly eventBytes?: number;
  /** Maximum number of tokens in an event of the response stream; by default the number of bytes of its text. */
  readonly eventTokens?: number;
  /** Maximum number of tokens that the chat template adds to a request. */
  readonly templateTokens?: number;
}

/** Fields of every model. */
export interface BaseModelFile {
  readonly id: string;
  /** Other names under which the model can be requested. */
  readonly aliases?: readonly string[];
  readonly name: string;
  readonly provider: string;
  readonly description: string;
  /** Date, such as `2026-11-20`. */
  readonly released: string;
  /** First UTC day on which the model no longer exists. From this day on, it is not sold. */
  readonly retires?: string;
  /** Id of the model that replaces this one when it has retired; a model of the same type. */
  readonly successor?: string;
  readonly popular: boolean;
  /** The model is part of the free tier, like every model whose id ends with `:free`. */
  readonly freeTier?: boolean;
  readonly privacy: PrivacyLevel;
  readonly inputs: readonly string[];
}

/** A model that is priced by tokens. */
export interface ModelFile extends BaseModelFile {
  readonly type: 'chat' | 'embedding';
  readonly outputs?: readonly string[];
  readonly context: number;
  /** 0 if the output does not consist of tokens. */
  readonly maxOutput: number;
  /**
   * Output tokens per choice of a usual long completion, used until the lengths have been measured; 2,000 by default.
   */
  readonly longOutput?: number;
  /** Maximum number of tokens per input image, if it is more than 5,000. */
  readonly imageTokens?: number;
  /** Length of an embedding vector. A request can reduce it at endpoints with the parameter `dimensions`. */
  readonly dimensions?: number;
  /**
   * Number of token ids of the model, which are 0 to `vocabulary - 1`. Undefined if it is unknown. Of an open model it
   * is the number of its token embeddings, which can differ between sizes: Qwen3-Embedding-8B has 151,665 and the 0.6B
   * model 151,669 (`tokenizer.ggml.tokens` of their GGUF files, https://github.com/gpustack/gpustack/issues/4344 and
   * https://github.com/ollama/ollama/issues/12088).
   */
  readonly vocabulary?: number;
  /** Only the sandbox serves the model. */
  readonly simulated?: boolean;
  /** The model searches the web for every response, which its price includes. */
  readonly searchesWeb?: boolean;
  /** Ids of the models that the suffixes `:thinking` and `:extended` select. */
  readonly variants?: Readonly<Partial<Record<'thinking' | 'extended', string>>>;
  /** Provider preferences that override those of the caller. */
  readonly routing?: Readonly<Partial<Record<'order' | 'only' | 'ignore', readonly string[]>>> & {
    /** Web search requires endpoints that retain data. */
    readonly webSearchDropsZdr?: boolean;
  };
  readonly endpoints: readonly EndpointFile[];
}

/** Validation rules of every endpoint. */
export const OFFER_RULES: Readonly<Record<string, ValidationRule>> = {
  provider: text,
  upstream: text,
  model: text,
  margin: factor,
  parameters: (value, location) => (typeof value === 'string' ? text : texts)(value, location),
  modelRules: optionalRule((value, location) => (typeof value === 'string' ? text : modelRulesRule)(value, location)),
  maxChoices: optionalRule(count),
  routes: optionalRule(flag),
  retires: optionalRule(day),
  onDisconnect: optionalRule(enumRule(DISCONNECT_BEHAVIORS)),
  zdr: optionalRule(flag),
  collectsData: optionalRule(flag),
  quantization: optionalRule(enumRule(QUANTIZATIONS)),
  latencyMs: optionalRule(positive),
  tokensPerSecond: optionalRule(positive),
  toolReliability: optionalRule(share),
  source: optionalRule(priceSource),
};

const usdPerMillionTokens = objectRule({
  input: amount,
  output: amount,
  cacheRead: optionalRule(amount),
  cacheWrite: optionalRule(amount),
  cacheWriteHour: optionalRule(amount),
  reasoning: optionalRule(amount),
});

const endpointFields = objectRule({
  ...OFFER_RULES,
  usdPerMillionTokens,
  tiers: optionalRule(listRule(objectRule({ above: count, usdPerMillionTokens }))),
  usdPerRequest: optionalRule(amount),
  searchFee: optionalRule(text),
  searchOnRequest: optionalRule(flag),
  speaks: optionalRule(listRule(enumRule(CHAT_PROTOCOLS))),
  enclave: optionalRule(patternRule('a lower-case path, such as "/model", or ""', /^(\/[a-z0-9][a-z0-9._-]*)*$/)),
  eventBytes: optionalRule(countOrZero),
  eventTokens: optionalRule(count),
  templateTokens: optionalRule(countOrZero),
});

/**
 * Requires tiers in ascending order, each with all prices that the endpoint has: a missing price would fall back to
 * that of short inputs.
 */
const endpoint: ValidationRule = (value, location) => {
  endpointFields(value, location);
  const { usdPerMillionTokens: base, tiers = [] } = value as EndpointFile;
  for (const [i, { above, usdPerMillionTokens: prices }] of tiers.entries()) {
    const tierLocation = withParent(location, 'tiers', i);
    if (above <= (tiers[i - 1]?.above ?? 0))
      throw createDataFileError(withParent(tierLocation, 'above'), 'must be greater than that of the previous tier');
    const missing = Object.keys(base).find((unit) => !(unit in prices));
    if (missing !== undefined)
      throw createDataFileError(
        withParent(tierLocation, 'usdPerMillionTokens'),
        `has no price of ${missing}, but the endpoint has one`,
      );
  }
};

/** Validation rules of every model. */
export const BASE_MODEL_RULES: Readonly<Record<string, ValidationRule>> = {
  id: text,
  aliases: optionalRule(texts),
  type: enumRule(MODEL_TYPES),
  name: text,
  provider: text,
  description: text,
  released: day,
  retires: optionalRule(day),
  successor: optionalRule(text),
  popular: flag,
  freeTier: optionalRule(flag),
  privacy: enumRule(['anon', 'zdr', 'e2e']),
  inputs: texts,
};

export const chatModel = objectRule({
  ...BASE_MODEL_RULES,
  outputs: optionalRule(texts),
  context: count,
  maxOutput: count,
  longOutput: optionalRule(count),
  imageTokens: optionalRule(count),
  simulated: optionalRule(flag),
  searchesWeb: optionalRule(flag),
  variants: optionalRule(objectRule({ thinking: optionalRule(text), extended: optionalRule(text) })),
  routing: optionalRule(
    objectRule({
      order: optionalRule(texts),
      only: optionalRule(texts),
      ignore: optionalRule(texts),
      webSearchDropsZdr: optionalRule(flag),
    }),
  ),
  endpoints: listRule(endpoint),
});

export const embeddingModel = objectRule({
  ...BASE_MODEL_RULES,
  outputs: texts,
  context: count,
  maxOutput: countOrZero,
  dimensions: count,
  vocabulary: optionalRule(count),
  endpoints: listRule(endpoint),
});

/** @param day in UTC, such as `2026-11-20` */
export function toUnixSeconds(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

/** Converts a display name to the slug that requests use, such as `google-vertex`. */
export function toSlug(provider: string): string {
  return provider.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

/** Names a model in error messages: by its id, or by its number in the file if it has no valid id. */
export function describeModel(model: unknown, i: number): string {
  const id = (model as { readonly id?: unknown } | null)?.id;
  return isText(id) ? `model "${id}"` : `model ${i + 1}`;
}
