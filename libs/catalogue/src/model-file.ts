/** A model as it stands in a data file, and what an operator may write there: a mistake must not make anything free. */
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

/** What becomes of an answer, and of its bill, when we hang up in the middle. */
export const DISCONNECT_BEHAVIORS = ['stops', 'bills on'] as const;
export type DisconnectBehavior = (typeof DISCONNECT_BEHAVIORS)[number];

/** Where a model can be had. */
export interface OfferFile {
  /** The display name of its provider: `OpenAI`. Unique among the endpoints of a model. */
  readonly provider: string;
  /** The configured connection it is reached by. */
  readonly upstream: string;
  /** What the upstream calls the model. */
  readonly model: string;
  readonly margin: string;
  /** Request fields that the upstream knows, or the name of a list of them. */
  readonly parameters: readonly string[] | string;
  /** It is a router itself: names of providers that are not ours are its own. */
  readonly routes?: boolean;
  /** Where this differs from what its provider does: behind a router it depends on the provider that answers. */
  readonly onDisconnect?: DisconnectBehavior;
  /** Nothing of a request is kept there. */
  readonly zdr?: boolean;
  /** Requests may be used for training. */
  readonly collectsData?: boolean;
  readonly quantization?: Quantization;
  /** Expected until it has been measured: milliseconds to the first token, tokens per second. */
  readonly latencyMs?: number;
  readonly tokensPerSecond?: number;
  /** Share of tool calls that are well-formed, from 0 to 1. */
  readonly toolReliability?: number;
}

/** OpenAI's chat completions, or whatever is translated from them, and OpenAI's Responses. */
export const CHAT_PROTOCOLS = ['chat', 'responses'] as const;
export type ChatProtocol = (typeof CHAT_PROTOCOLS)[number];

export type UsdPerMillionTokens = Readonly<Record<'input' | 'output', string>> &
  Readonly<Partial<Record<'cacheRead' | 'cacheWrite' | 'reasoning', string>>>;

/** What all tokens of a call cost whose input, cached or not, has more tokens than `above`. */
export interface TierFile {
  readonly above: number;
  readonly usdPerMillionTokens: UsdPerMillionTokens;
}

/** A model's endpoint that is paid by tokens. */
export interface EndpointFile extends OfferFile {
  readonly usdPerMillionTokens: UsdPerMillionTokens;
  /** Prices of long inputs, the longest last. */
  readonly tiers?: readonly TierFile[];
  readonly usdPerRequest?: string;
  /** It can search the web by itself when it is asked to: the fee of one such search. */
  readonly searchFee?: string;
  /** What it can be asked in; chat alone where nothing is said. */
  readonly speaks?: readonly ChatProtocol[];
  /** Where the enclave of a private model is at its vendor: a path, or nothing where the vendor is one enclave. */
  readonly enclave?: string;
  /** Bytes of an event in the stream of its answers that are not text: the more, the less an answer is held to be. */
  readonly eventBytes?: number;
  /** Tokens in an event of such a stream at most; where nothing is said, as many as its text has bytes. */
  readonly eventTokens?: number;
  /** Tokens that its chat template adds to a request at most. */
  readonly templateTokens?: number;
}

/** What is said of every model. */
export interface BaseModelFile {
  readonly id: string;
  /** Other names that find it. */
  readonly aliases?: readonly string[];
  readonly name: string;
  readonly provider: string;
  readonly description: string;
  /** Day, as in `2026-11-20`. */
  readonly released: string;
  readonly popular: boolean;
  readonly privacy: PrivacyLevel;
  readonly inputs: readonly string[];
}

/** A model that is paid by tokens. */
export interface ModelFile extends BaseModelFile {
  readonly type: 'chat' | 'embedding';
  readonly outputs?: readonly string[];
  readonly context: number;
  /** 0 where the output is not made of tokens. */
  readonly maxOutput: number;
  /** Tokens that an image is counted as at most, where that is more than 5,000. */
  readonly imageTokens?: number;
  /** Numbers in a vector of an embedding model; fewer on request, where an endpoint has the parameter `dimensions`. */
  readonly dimensions?: number;
  /** It searches the web for every answer, and that is part of its price. */
  readonly searchesWeb?: boolean;
  /** Models that the suffixes `:thinking` and `:extended` lead to. */
  readonly variants?: Readonly<Partial<Record<'thinking' | 'extended', string>>>;
  /** Routing that is enforced, whatever the caller prefers; by provider. */
  readonly routing?: Readonly<Partial<Record<'order' | 'only' | 'ignore', readonly string[]>>> & {
    /** Its web search works only with endpoints that keep data. */
    readonly webSearchDropsZdr?: boolean;
  };
  readonly endpoints: readonly EndpointFile[];
}

/** Fields of every endpoint. */
export const OFFER_RULES: Readonly<Record<string, ValidationRule>> = {
  provider: text,
  upstream: text,
  model: text,
  margin: factor,
  parameters: (value, location) => (typeof value === 'string' ? text : texts)(value, location),
  routes: optionalRule(flag),
  onDisconnect: optionalRule(enumRule(DISCONNECT_BEHAVIORS)),
  zdr: optionalRule(flag),
  collectsData: optionalRule(flag),
  quantization: optionalRule(enumRule(QUANTIZATIONS)),
  latencyMs: optionalRule(positive),
  tokensPerSecond: optionalRule(positive),
  toolReliability: optionalRule(share),
};

const usdPerMillionTokens = objectRule({
  input: amount,
  output: amount,
  cacheRead: optionalRule(amount),
  cacheWrite: optionalRule(amount),
  reasoning: optionalRule(amount),
});

const endpointFields = objectRule({
  ...OFFER_RULES,
  usdPerMillionTokens,
  tiers: optionalRule(listRule(objectRule({ above: count, usdPerMillionTokens }))),
  usdPerRequest: optionalRule(amount),
  searchFee: optionalRule(text),
  speaks: optionalRule(listRule(enumRule(CHAT_PROTOCOLS))),
  enclave: optionalRule(patternRule('a path of lower case, such as "/model", or ""', /^(\/[a-z0-9][a-z0-9._-]*)*$/)),
  eventBytes: optionalRule(countOrZero),
  eventTokens: optionalRule(count),
  templateTokens: optionalRule(countOrZero),
});

/** What a tier left out would be sold at the price of short inputs. */
const endpoint: ValidationRule = (value, location) => {
  endpointFields(value, location);
  const { usdPerMillionTokens: base, tiers = [] } = value as EndpointFile;
  for (const [i, { above, usdPerMillionTokens: prices }] of tiers.entries()) {
    const tierLocation = withParent(location, 'tiers', i);
    if (above <= (tiers[i - 1]?.above ?? 0))
      throw createDataFileError(withParent(tierLocation, 'above'), 'must be more than that of the one before');
    const missing = Object.keys(base).find((unit) => !(unit in prices));
    if (missing !== undefined)
      throw createDataFileError(
        withParent(tierLocation, 'usdPerMillionTokens'),
        `has no price of ${missing}, which there is one of without it`,
      );
  }
};

/** Fields of every model. */
export const BASE_MODEL_RULES: Readonly<Record<string, ValidationRule>> = {
  id: text,
  aliases: optionalRule(texts),
  type: enumRule(MODEL_TYPES),
  name: text,
  provider: text,
  description: text,
  released: day,
  popular: flag,
  privacy: enumRule(['anon', 'zdr', 'e2e']),
  inputs: texts,
};

export const chatModel = objectRule({
  ...BASE_MODEL_RULES,
  outputs: optionalRule(texts),
  context: count,
  maxOutput: count,
  imageTokens: optionalRule(count),
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
  endpoints: listRule(endpoint),
});

/** How providers are named in requests: `deepinfra`, `google-vertex`. */
export function toSlug(provider: string): string {
  return provider.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

/** How a model is called in what is wrong with it: by its id, or by its place in the file where it has none. */
export function describeModel(model: unknown, i: number): string {
  const id = (model as { readonly id?: unknown } | null)?.id;
  return isText(id) ? `model "${id}"` : `model ${i + 1}`;
}
