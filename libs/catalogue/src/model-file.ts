/** Models in the format of the data files, with strict validation: a typing error must not make a model free. */
import { z } from 'zod';
import {
  amount,
  count,
  countOrZero,
  day,
  factor,
  flag,
  listSchema,
  patternSchema,
  positive,
  priceSource,
  share,
  text,
  texts,
} from './field-schemas.ts';
import { modelRules } from './model-rules.ts';
import { addCheck, type ReportProblem, type Valid } from './validation.ts';

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

/** A model at one provider. */
export const baseEndpoint = z.strictObject({
  provider: text.describe('Display name of the provider, such as `OpenAI`. Unique among the endpoints of a model.'),
  upstream: text.describe('Slug of the provider that is called.'),
  model: text.describe('Name of the model at the called provider.'),
  margin: factor.describe('The price divided by the cost, such as `1.055`.'),
  parameters: z
    .union([text, texts])
    .describe('Request fields that the called provider supports, or the name of a list in `parameters.json`.'),
  modelRules: z
    .union([text, modelRules])
    .optional()
    .describe(
      'Rules of the model, or the name of a set in `model-rules.json`. By default those of the set with the name of ' +
        'the parameter list, if there is one.',
    ),
  maxChoices: count.optional().describe("Maximum number of choices per request. Overrides the provider's value."),
  routes: flag
    .optional()
    .describe('The called provider is a router: provider names that the catalogue does not have are forwarded to it.'),
  retires: day
    .optional()
    .describe('First UTC day on which the provider no longer serves the model, such as `2026-12-11`.'),
  onDisconnect: z
    .enum(DISCONNECT_BEHAVIORS)
    .optional()
    .describe("Overrides the provider's value. A router's behaviour depends on the provider that serves the request."),
  zdr: flag.optional().describe('The endpoint retains no request data.'),
  collectsData: flag.optional().describe('The provider may use requests for training.'),
  quantization: z.enum(QUANTIZATIONS).optional(),
  latencyMs: positive.optional().describe('Expected time to the first token, used until it has been measured.'),
  tokensPerSecond: positive.optional().describe('Expected output speed, used until it has been measured.'),
  toolReliability: share.optional().describe('Share of tool calls that are well-formed, from 0 to 1.'),
  source: priceSource.optional().describe('Where the prices were found.'),
});
export type OfferFile = Valid<typeof baseEndpoint>;

/** `chat` is OpenAI's Chat Completions or a protocol that is translated from it, `responses` is OpenAI's Responses. */
export const CHAT_PROTOCOLS = ['chat', 'responses'] as const;
export type ChatProtocol = (typeof CHAT_PROTOCOLS)[number];

const usdPerMillionTokens = z.strictObject({
  input: amount,
  output: amount,
  cacheRead: amount.optional(),
  cacheWrite: amount.optional(),
  cacheWriteHour: amount.optional(),
  reasoning: amount.optional(),
});
export type UsdPerMillionTokens = Valid<typeof usdPerMillionTokens>;

/** Prices of all tokens of a call whose input, including cached tokens, is longer than `above` tokens. */
const tier = z.strictObject({ above: count, usdPerMillionTokens });
export type TierFile = Valid<typeof tier>;

const endpointFields = baseEndpoint.extend({
  usdPerMillionTokens,
  tiers: listSchema(tier).optional().describe('Prices of long inputs, in ascending order of `above`.'),
  usdPerRequest: amount.optional(),
  searchFee: text
    .optional()
    .describe('Name of the fee per web search, if the model can search the web by itself on request.'),
  searchOnRequest: flag
    .optional()
    .describe("The model's own search is used only for requests that demand it with the engine `native`."),
  speaks: listSchema(z.enum(CHAT_PROTOCOLS)).optional().describe('Supported protocols; only `chat` by default.'),
  enclave: patternSchema('a lower-case path, such as "/model", or ""', /^(\/[a-z0-9][a-z0-9._-]*)*$/)
    .optional()
    .describe("Path of a private model's enclave at its provider; empty if the provider consists of one enclave."),
  eventBytes: countOrZero
    .optional()
    .describe(
      'Bytes of an event of the response stream that are not text. Tokens of encrypted responses are estimated from ' +
        'the rest of the bytes.',
    ),
  eventTokens: count
    .optional()
    .describe(
      'Maximum number of tokens in an event of the response stream; by default the number of bytes of its text.',
    ),
  templateTokens: countOrZero.optional().describe('Maximum number of tokens that the chat template adds to a request.'),
});

/** An endpoint that is priced by tokens. */
export type EndpointFile = Valid<typeof endpointFields>;

/**
 * Requires tiers in ascending order, each with all prices that the endpoint has: a missing price would fall back to
 * that of short inputs.
 */
function checkTiers({ usdPerMillionTokens: base, tiers = [] }: EndpointFile, report: ReportProblem): void {
  for (const [i, { above, usdPerMillionTokens: prices }] of tiers.entries()) {
    if (above <= (tiers[i - 1]?.above ?? 0))
      report('must be greater than that of the previous tier', 'tiers', i, 'above');
    for (const unit of Object.keys(base))
      if (!(unit in prices))
        report(`has no price of ${unit}, but the endpoint has one`, 'tiers', i, 'usdPerMillionTokens');
  }
}

/** Fields of every model. */
export const baseModel = z.strictObject({
  id: text,
  aliases: texts.optional().describe('Other names under which the model can be requested.'),
  name: text,
  provider: text,
  description: text,
  released: day.describe('Date, such as `2026-11-20`.'),
  retires: day
    .optional()
    .describe('First UTC day on which the model no longer exists. From this day on, it is not sold.'),
  successor: text
    .optional()
    .describe('Id of the model that replaces this one when it has retired; a model of the same type.'),
  popular: flag,
  freeTier: flag
    .optional()
    .describe('The model is part of the free tier, like every model whose id ends with `:free`.'),
  privacy: z.enum(['anon', 'zdr', 'e2e']),
  inputs: texts,
});
export type PrivacyLevel = Valid<typeof baseModel>['privacy'];

const tokenPricedModel = baseModel.extend({
  type: z.enum(['chat', 'embedding']),
  outputs: texts.optional(),
  context: count,
  maxOutput: countOrZero.describe('0 if the output does not consist of tokens.'),
  longOutput: count
    .optional()
    .describe(
      'Output tokens per choice of a usual long completion, used until the lengths have been measured; 2,000 by ' +
        'default.',
    ),
  imageTokens: count.optional().describe('Maximum number of tokens per input image, if it is more than 5,000.'),
  dimensions: count
    .optional()
    .describe('Length of an embedding vector. A request can reduce it at endpoints with the parameter `dimensions`.'),
  // The sizes of an open model can differ: Qwen3-Embedding-8B has 151,665 and the 0.6B model 151,669
  // (`tokenizer.ggml.tokens` of their GGUF files, https://github.com/gpustack/gpustack/issues/4344 and
  // https://github.com/ollama/ollama/issues/12088).
  vocabulary: count
    .optional()
    .describe(
      'Number of token ids of the model, which are 0 to `vocabulary - 1`. Undefined if it is unknown. Of an open ' +
        'model it is the number of its token embeddings.',
    ),
  simulated: flag.optional().describe('Only the sandbox serves the model.'),
  searchesWeb: flag.optional().describe('The model searches the web for every response, which its price includes.'),
  variants: z
    .strictObject({ thinking: text.optional(), extended: text.optional() })
    .optional()
    .describe('Ids of the models that the suffixes `:thinking` and `:extended` select.'),
  routing: z
    .strictObject({
      order: texts.optional(),
      only: texts.optional(),
      ignore: texts.optional(),
      webSearchDropsZdr: flag.optional().describe('Web search requires endpoints that retain data.'),
    })
    .optional()
    .describe('Provider preferences that override those of the caller.'),
  endpoints: listSchema(addCheck(endpointFields, checkTiers)),
});

/** A model that is priced by tokens. */
export type ModelFile = Valid<typeof tokenPricedModel>;

export const chatModel = tokenPricedModel
  .omit({ dimensions: true, vocabulary: true })
  .extend({ type: z.literal('chat'), maxOutput: count });

export const embeddingModel = tokenPricedModel
  .omit({ longOutput: true, imageTokens: true, simulated: true, searchesWeb: true, variants: true, routing: true })
  .extend({ type: z.literal('embedding'), outputs: texts, dimensions: count });

/** @param day in UTC, such as `2026-11-20` */
export function toUnixSeconds(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

/** Converts a display name to the slug that requests use, such as `google-vertex`. */
export function toSlug(provider: string): string {
  return provider.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
