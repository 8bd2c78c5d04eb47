/** Models and endpoints as JSON, with the fields that clients of OpenAI, OpenRouter and similar services expect. */
import { selectDefaultEndpoints } from '#application';
import {
  type AnyModel,
  type Catalogue,
  cachesForHour,
  calculateListPrice,
  calculateTierPrice,
  type Endpoint,
  isMediaModel,
  LIST_PRICE_TOKENS,
  LIST_PRICE_UNITS,
  listTiers,
  MEDIA_CAPABILITIES,
  MEDIA_UNITS,
  type MediaModel,
  type MediaUnit,
  type Retirement,
} from '#catalogue';
import { calculateCostAndPrice, type Unit } from '#domain';
import { formatUsd, money, toJsonNumber, toUsdJsonNumber } from '#kernel';
import { toRetirementJson } from '../edge/responses/retirement-notices.ts';

export type ModelJson = ReturnType<typeof toModelJson>;

/** @param retirement the end of the model if clients get a notice of it */
export function toModelJson(model: AnyModel, retirement: Retirement | undefined) {
  const [context, maxOutput] = isMediaModel(model) ? [0, 0] : [model.context, model.maxOutput];
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    created_at: toJsonNumber(`${model.created}000`),
    owned_by: model.provider.toLowerCase(),
    provider: model.provider,
    name: model.name,
    type: model.type,
    description: model.description,
    canonical_slug: model.id,
    context_length: context,
    popular: model.popular,
    privacyLevel: model.privacy,
    architecture: toArchitecture(model),
    pricing: isMediaModel(model)
      ? toUnitPricing(model.endpoints, model.type)
      : toTokenPricing(selectDefaultEndpoints(model)),
    ...(isMediaModel(model) ? { capabilities: toCapabilities(model) } : {}),
    supported_parameters: [
      ...new Set(
        (model.endpoints as readonly { parameters: readonly string[] }[]).flatMap((endpoint) => endpoint.parameters),
      ),
    ],
    top_provider: {
      context_length: context || null,
      max_completion_tokens: maxOutput || null,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_voices: isMediaModel(model) && model.voices.length > 0 ? model.voices.map(({ id }) => id) : null,
    ...toRetirementJson(retirement),
    links: { details: `/v1/models/${model.id}` },
  };
}

/** Checks whether an endpoint of this installation serves the model to requests without provider preferences. */
export function isAvailable(model: AnyModel): boolean {
  return isMediaModel(model) ? model.endpoints.length > 0 : selectDefaultEndpoints(model).length > 0;
}

/** Returns the endpoints of a model as OpenRouter lists them, with their privacy and whether they serve by default. */
export function toEndpointsJson(model: AnyModel, catalogue: Catalogue) {
  const { id, name, created, description } = model;
  const served = isMediaModel(model) ? model.endpoints : selectDefaultEndpoints(model);
  const all: readonly Endpoint[] = model.endpoints;
  const endpoints = all.map((endpoint) => ({
    ...toEndpointJson(model, endpoint),
    expiration_date: catalogue.findEndpointRetirementDay(model, endpoint) ?? null,
    default: served.includes(endpoint),
  }));
  return { id, name, created, description, architecture: toArchitecture(model), endpoints };
}

function toEndpointJson(model: AnyModel, endpoint: Endpoint) {
  const { provider, slug, quantization, parameters, zdr, collectsData, latencyMs, tokensPerSecond } = endpoint;
  const [context, maxOutput] = isMediaModel(model) ? [0, 0] : [model.context, model.maxOutput];
  const choosesTools = parameters.includes('tool_choice');
  return {
    name: `${provider} | ${model.id}`,
    model_id: model.id,
    model_name: model.name,
    provider_name: provider,
    tag: slug,
    pricing: isMediaModel(model) ? toUnitPricing([endpoint], model.type) : toTokenPricing([endpoint]),
    privacy: { zdr, collects_data: collectsData },
    context_length: context,
    max_completion_tokens: maxOutput || null,
    max_prompt_tokens: null,
    quantization,
    supported_parameters: parameters,
    supports_tool_choice: { auto: choosesTools, function: choosesTools, none: choosesTools, required: choosesTools },
    supports_implicit_caching: endpoint.tariff.prices.some(({ unit }) => unit === 'cacheRead'),
    supports_voice_cloning: false,
    supports_diarization: false,
    service_tier: null,
    expected: { latency_ms: latencyMs ?? null, tokens_per_second: tokensPerSecond ?? null },
    // OpenRouter's strict clients require these fields. The types of tools and measured performance are not published.
    native_tools: {},
    status: 0,
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
    latency_last_30m: null,
    throughput_last_30m: null,
  };
}

function toArchitecture({ inputs, outputs }: AnyModel) {
  return {
    modality: `${inputs.join('+')}->${outputs.join('+')}`,
    input_modalities: inputs,
    output_modalities: outputs,
    tokenizer: 'Other',
    instruct_type: null,
  };
}

/** Returns the highest price of each unit among the endpoints: for short inputs, and in `overrides` for long ones. */
function toTokenPricing(endpoints: readonly Endpoint[]) {
  const calculateMaxPrice = (unit: Unit, quantity: number) =>
    money.max(...endpoints.map(({ tariff }) => calculateListPrice({ [unit]: quantity }, tariff).price));
  const toPricePerMillion = (unit: Unit) => toUsdJsonNumber(calculateMaxPrice(unit, LIST_PRICE_TOKENS));
  const formatUnitPrice = (unit: Unit) => formatUsd(calculateMaxPrice(unit, 1));
  const both = { input_per_1M: toPricePerMillion('input'), output_per_1M: toPricePerMillion('output') };
  const overrides = toPriceOverrides(endpoints);
  const hasHourCache = endpoints.some(cachesForHour);
  return {
    input_per_1M_tokens: both.input_per_1M,
    output_per_1M_tokens: both.output_per_1M,
    cache_read_per_1M_tokens: toPricePerMillion('cacheRead'),
    api: both,
    ui: both,
    prompt: formatUnitPrice('input'),
    completion: formatUnitPrice('output'),
    input_cache_read: formatUnitPrice('cacheRead'),
    input_cache_write: formatUnitPrice('cacheWrite'),
    ...(hasHourCache ? { input_cache_write_1h: formatUnitPrice('cacheWriteHour') } : {}),
    internal_reasoning: formatUnitPrice('reasoning'),
    request: formatUnitPrice('request'),
    ...(overrides.length > 0 ? { overrides } : {}),
  };
}

/**
 * Returns the prices of long inputs as OpenRouter lists them. They apply to all tokens of a call whose input has more
 * than `min_prompt_tokens` tokens.
 */
function toPriceOverrides(endpoints: readonly Endpoint[]) {
  const hasHourCache = endpoints.some(cachesForHour);
  const sizes = [...new Set(endpoints.flatMap(({ tariff }) => listTiers(tariff)))].sort((a, b) => a - b);
  return sizes.map((above) => {
    const formatTierPrice = (unit: Unit) =>
      formatUsd(money.max(...endpoints.map(({ tariff }) => calculateTierPrice({ [unit]: 1 }, tariff, above).price)));
    return {
      min_prompt_tokens: above,
      prompt: formatTierPrice('input'),
      completion: formatTierPrice('output'),
      input_cache_read: formatTierPrice('cacheRead'),
      input_cache_write: formatTierPrice('cacheWrite'),
      ...(hasHourCache ? { input_cache_write_1h: formatTierPrice('cacheWriteHour') } : {}),
    };
  });
}

/**
 * Returns the prices at the endpoint with the lowest base price. The first variant that matches a request applies.
 * Strict clients require `prompt`, `completion` and `request`, which are 0 here.
 */
function toUnitPricing(endpoints: readonly Endpoint[], type: MediaModel['type']) {
  const { unit, base, variants } = selectCheapest(endpoints.map(toListing), ({ base }) => base.price);
  const both = { base_price: toUsdJsonNumber(base.price) };
  return {
    unit,
    ...both,
    ...(variants.length > 0 ? { variants } : {}),
    api: both,
    ui: both,
    prompt: '0',
    completion: '0',
    request: '0',
    ...(type === 'image' ? { image: formatUsd(base.price) } : {}),
  };
}

/** Converts prices to the listed unit, such as the minute if milliseconds are billed. */
function toListing({ tariff: { prices } }: Endpoint) {
  const unit = MEDIA_UNITS.find((mediaUnit) => LIST_PRICE_UNITS[mediaUnit].unit === prices[0]?.unit) as MediaUnit;
  const one = { [LIST_PRICE_UNITS[unit].unit]: LIST_PRICE_UNITS[unit].quantity };
  const variants = prices.flatMap(({ when, ...price }) =>
    when ? [{ ...when, price: toUsdJsonNumber(calculateCostAndPrice(one, [price]).price) }] : [],
  );
  return { unit, base: calculateCostAndPrice(one, prices), variants };
}

/** Returns the capabilities of a model and the values of its options. The first value of an option is the default. */
function toCapabilities({ type, capabilities, choices, maxImages, maxCharacters }: MediaModel) {
  return {
    ...Object.fromEntries(
      MEDIA_CAPABILITIES[type].map((capability) => [capability, capabilities.includes(capability)]),
    ),
    ...(maxImages === undefined ? {} : { max_images: maxImages }),
    ...(maxCharacters === undefined ? {} : { max_characters: maxCharacters }),
    choices: choices ?? {},
  };
}

function selectCheapest<E>(endpoints: readonly E[], getPrice: (endpoint: E) => bigint): E {
  return endpoints.reduce((low, endpoint) => (getPrice(endpoint) < getPrice(low) ? endpoint : low));
}
