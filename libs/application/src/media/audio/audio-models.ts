/** Models of sound: which one is asked for, where it is had, and what it costs at most. */
import { type Catalogue, type Endpoint, getProviderCapability, isMediaModel, type MediaModel } from '#catalogue';
import { calculateMaxPrice, type PriceTerms, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { parseRoutingPreferences, resolveModel } from '../../routing/preferences.ts';

/** @throws InvalidRequestError when there is no such model, or it does something else */
export function resolveAudioModel(
  name: string,
  capability: 'speech' | 'transcription',
  catalogue: Catalogue,
): MediaModel {
  const { model } = resolveModel(name, catalogue);
  if (isMediaModel(model) && getProviderCapability(model) === capability) return model;
  const does = capability === 'speech' ? 'speak' : 'transcribe';
  throw new InvalidRequestError(
    400,
    `The model "${model.id}" does not ${does}; GET /v1/audio/models lists those that do`,
    'model',
  );
}

/**
 * The endpoints that may be asked, in order.
 * @param provider what a request prefers, in OpenRouter's words, as far as it says who may have the data
 * @throws InvalidRequestError 404 that says why there is none
 */
export function selectAudioEndpoints(
  { id, endpoints, excludedEndpoints = {} }: MediaModel,
  provider: unknown,
): readonly Endpoint[] {
  const { only, ignore, zdr, denyDataCollection } = parseRoutingPreferences(parseIfJson(provider));
  const reasons = new Map(Object.entries(excludedEndpoints));
  const allowedEndpoints = endpoints.filter((endpoint) => {
    const { slug } = endpoint;
    if (zdr && !endpoint.zdr) reasons.set(slug, 'keeps data');
    else if (denyDataCollection && endpoint.collectsData) reasons.set(slug, 'collects data');
    else if ((only.length > 0 && !only.includes(slug)) || ignore.includes(slug)) reasons.set(slug, 'is not wanted');
    else return true;
    return false;
  });
  if (allowedEndpoints.length > 0) return allowedEndpoints;
  const explanation = [...reasons].map(([slug, reason]) => `${slug} ${reason}`).join('; ');
  throw new InvalidRequestError(404, `No endpoints found for ${id}${explanation && `: ${explanation}`}`, 'provider');
}

export function calculateMaxAudioPrice(usage: Usage, endpoints: readonly Endpoint[], terms: PriceTerms = {}): PicoUsd {
  return money.max(...endpoints.map(({ tariff }) => calculateMaxPrice(usage, tariff.prices, terms)));
}

/** What an endpoint knows of what a request says; what it does not know is left out. */
export function pickSupportedFields<V>(
  { parameters }: Endpoint,
  fields: Readonly<Record<string, V | undefined>>,
): Readonly<Record<string, V>> {
  const supported = Object.entries(fields).filter(([name, value]) => value !== undefined && parameters.includes(name));
  return Object.fromEntries(supported) as Readonly<Record<string, V>>;
}

/** A language without its region: `en` for `en-US`. */
export function toPrimaryLanguage(language: string): string {
  return (language.split(/[-_]/)[0] as string).toLowerCase();
}

/** A form has it as text. What is none is refused with the same words as elsewhere. */
function parseIfJson(provider: unknown): unknown {
  if (typeof provider !== 'string') return provider;
  try {
    return JSON.parse(provider);
  } catch {
    return provider;
  }
}
