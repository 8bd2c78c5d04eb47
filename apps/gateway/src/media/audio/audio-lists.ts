/** Lists of speech and transcription models, with prices and voices. */
import { listLanguages } from '#application';
import { getProviderCapability, LIST_PRICE_UNITS, type MediaModel } from '#catalogue';
import { calculateCostAndPrice } from '#domain';
import { toUsdJsonNumber } from '#kernel';

/** `base_price` is the price at the provider. `api_price` and `ui_price` are both the charged price. */
export function toAudioModelJson(model: MediaModel) {
  const { id, name, provider, choices, maxCharacters } = model;
  const isSpeech = getProviderCapability(model) === 'speech';
  const unit = isSpeech ? '1k_characters' : 'minute';
  const one = { [LIST_PRICE_UNITS[unit].unit]: LIST_PRICE_UNITS[unit].quantity };
  const [endpoint] = model.endpoints;
  const prices = endpoint?.tariff.prices ?? [];
  const toPricesJson = (of: typeof prices) => {
    const { cost, price } = calculateCostAndPrice(one, of);
    return { base_price: toUsdJsonNumber(cost), api_price: toUsdJsonNumber(price), ui_price: toUsdJsonNumber(price) };
  };
  return {
    id,
    object: 'model',
    name,
    type: isSpeech ? 'tts' : 'stt',
    provider: provider.toLowerCase(),
    unit,
    ...toPricesJson(prices),
    variants: prices.flatMap(({ when, ...price }) => (when ? [{ ...when, ...toPricesJson([price]) }] : [])),
    languages: isSpeech ? listLanguages(model) : (choices?.language ?? []),
    max_characters: maxCharacters ?? null,
  };
}

/** Returns the voices of a model. A voice of several models is listed with each of them. */
export function toVoicesJson(model: MediaModel) {
  const provider = model.provider.toLowerCase();
  return model.voices.map(({ id, name, language, gender, description }) => ({
    id,
    name,
    provider,
    model_id: model.id,
    language,
    gender,
    description,
  }));
}
