/** One row of the list of models for several readers: OpenAI's clients, OpenRouter's strict ones, those of services of this kind. */
import { type AnyModel, CAPABILITIES, isMedia, type MediaModel, type Model } from '#catalogue';
import { formatUsd, plainNumber, usdNumber } from '#kernel';
import { perToken, price } from './prices.ts';

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

/** The prices that are listed: what a request costs that is routed by price. */
function tokenPricing({ endpoints }: Model) {
  const { rates } = cheapest(endpoints, ({ rates }) => 3n * rates.input + rates.output + rates.request);
  const million = (rate: bigint) => usdNumber(price(rate, rates));
  const both = { input_per_1M: million(rates.input), output_per_1M: million(rates.output) };
  return {
    input_per_1M_tokens: both.input_per_1M,
    output_per_1M_tokens: both.output_per_1M,
    cache_read_per_1M_tokens: million(rates.cacheRead),
    api: both,
    ui: both,
    prompt: perToken(rates.input, rates),
    completion: perToken(rates.output, rates),
    input_cache_read: perToken(rates.cacheRead, rates),
    request: formatUsd(price(rates.request, rates)),
  };
}

/** Tokens cost nothing here, which strict readers need as a price. The first variant that matches applies. */
function unitPricing({ endpoints, type }: MediaModel) {
  const { prices } = cheapest(endpoints, ({ prices }) => prices.amount);
  const base = price(prices.amount, prices);
  const variants = prices.variants.map(({ when, amount }) => ({ ...when, price: usdNumber(price(amount, prices)) }));
  const both = { base_price: usdNumber(base) };
  return {
    unit: prices.unit,
    ...both,
    ...(variants.length > 0 ? { variants } : {}),
    api: both,
    ui: both,
    prompt: '0',
    completion: '0',
    request: '0',
    ...(type === 'image' ? { image: formatUsd(base) } : {}),
  };
}

/** Badges, and what a request may choose; the first of each is what it gets when it chooses none. */
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
