/** One row of the list of models for several readers: OpenAI's clients, OpenRouter's strict ones, those of services of this kind. */
import {
  type AnyModel,
  CAPABILITIES,
  type Endpoint,
  isMedia,
  LISTED_TOKENS,
  LISTED_UNITS,
  listPriceOf,
  MEDIA_UNITS,
  type MediaModel,
  type MediaUnit,
  type Model,
} from '#catalogue';
import { priceOf, type Unit } from '#domain';
import { formatUsd, plainNumber, usdNumber } from '#kernel';

export type Row = ReturnType<typeof modelWire>;

export function modelWire(model: AnyModel) {
  const [context, maxOutput] = isMedia(model) ? [0, 0] : [model.context, model.maxOutput];
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    created_at: plainNumber(`${model.created}000`),
    owned_by: model.provider.toLowerCase(),
    provider: model.provider,
    name: model.name,
    type: model.type,
    description: model.description,
    canonical_slug: model.id,
    context_length: context,
    popular: model.popular,
    privacyLevel: model.privacy,
    architecture: {
      modality: `${model.inputs.join('+')}->${model.outputs.join('+')}`,
      input_modalities: model.inputs,
      output_modalities: model.outputs,
      tokenizer: 'Other',
      instruct_type: null,
    },
    pricing: isMedia(model) ? unitPricing(model) : tokenPricing(model),
    ...(isMedia(model) ? { capabilities: capabilitiesOf(model) } : {}),
    supported_parameters: [
      ...new Set((model.endpoints as readonly { parameters: readonly string[] }[]).flatMap((each) => each.parameters)),
    ],
    top_provider: {
      context_length: context || null,
      max_completion_tokens: maxOutput || null,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_voices: null,
    links: { details: `/v1/models/${model.id}` },
  };
}

/** The listed prices: those of a request that is routed by price. */
function tokenPricing({ endpoints }: Model) {
  const typical = { input: 3 * LISTED_TOKENS, output: LISTED_TOKENS, request: 1 };
  const { tariff } = cheapest(endpoints, ({ tariff }) => listPriceOf(typical, tariff).cost);
  const million = (unit: Unit) => usdNumber(listPriceOf({ [unit]: LISTED_TOKENS }, tariff).price);
  const each = (unit: Unit) => formatUsd(listPriceOf({ [unit]: 1 }, tariff).price);
  const both = { input_per_1M: million('input'), output_per_1M: million('output') };
  return {
    input_per_1M_tokens: both.input_per_1M,
    output_per_1M_tokens: both.output_per_1M,
    cache_read_per_1M_tokens: million('cacheRead'),
    api: both,
    ui: both,
    prompt: each('input'),
    completion: each('output'),
    input_cache_read: each('cacheRead'),
    request: each('request'),
  };
}

/** Tokens cost nothing here, which strict readers need as a price. The first variant that matches applies. */
function unitPricing({ endpoints, type }: MediaModel) {
  const { unit, base, variants } = cheapest(endpoints.map(listing), ({ base }) => base.cost);
  const both = { base_price: usdNumber(base.price) };
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

/** Prices by the unit that people know: by the minute, where milliseconds are counted. */
function listing({ tariff: { prices } }: Endpoint) {
  const unit = MEDIA_UNITS.find((each) => LISTED_UNITS[each].unit === prices[0]?.unit) as MediaUnit;
  const one = { [LISTED_UNITS[unit].unit]: LISTED_UNITS[unit].quantity };
  const variants = prices.flatMap(({ when, ...price }) =>
    when ? [{ ...when, price: usdNumber(priceOf(one, [price]).price) }] : [],
  );
  return { unit, base: priceOf(one, prices), variants };
}

/** Badges, and the values that a request may choose; the first of each is the default. */
function capabilitiesOf({ type, capabilities, choices, maxImages, maxCharacters }: MediaModel) {
  return {
    ...Object.fromEntries(CAPABILITIES[type].map((each) => [each, capabilities.includes(each)])),
    ...(maxImages === undefined ? {} : { max_images: maxImages }),
    ...(maxCharacters === undefined ? {} : { max_characters: maxCharacters }),
    choices: choices ?? {},
  };
}

function cheapest<E>(endpoints: readonly E[], level: (endpoint: E) => bigint): E {
  return endpoints.reduce((low, each) => (level(each) < level(low) ? each : low));
}
