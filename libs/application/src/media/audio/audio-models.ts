/** Audio models: finds the requested model and its endpoints, and calculates the maximum price. */
import {
  type AnyModel,
  type Catalogue,
  type Endpoint,
  getProviderCapability,
  isMediaModel,
  type MediaModel,
} from '#catalogue';
import { calculateMaxPrice, type PriceTerms, type Usage } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { parseIfJson } from '../../routing/data-retention.ts';
import { parseRoutingPreferences, resolveModel } from '../../routing/preferences.ts';

/** Returns the audio models that have an endpoint in this installation. */
export function listAvailableAudioModels(models: readonly AnyModel[]): readonly MediaModel[] {
  return models.filter(isMediaModel).filter(({ type, endpoints }) => type === 'audio' && endpoints.length > 0);
}

/** @throws InvalidRequestError if there is no such model, or it does not have this capability */
export function resolveAudioModel(
  name: string,
  capability: 'speech' | 'transcription',
  catalogue: Catalogue,
): MediaModel {
  const { model } = resolveModel(name, catalogue);
  if (isMediaModel(model) && getProviderCapability(model) === capability) return model;
  const does = capability === 'speech' ? 'support text to speech' : 'support transcription';
  throw new InvalidRequestError(
    400,
    `The model "${model.id}" does not ${does}; GET /v1/audio/models lists the models that do`,
    'model',
  );
}

/**
 * Returns the endpoints that may be called, in the order of the model.
 * @param provider preferences in OpenRouter's format; only `only`, `ignore`, `zdr` and `data_collection` apply
 * @throws InvalidRequestError 400 if a preference is invalid; 404 with the reasons if there is no endpoint
 */
export function selectAudioEndpoints(
  { id, endpoints, excludedEndpoints = {} }: MediaModel,
  provider: unknown,
): readonly Endpoint[] {
  const { only, ignore, zdr, denyDataCollection } = parseRoutingPreferences(parseIfJson(provider));
  const reasons = new Map(Object.entries(excludedEndpoints));
  const allowedEndpoints = endpoints.filter((endpoint) => {
    const { slug } = endpoint;
    if (zdr && !endpoint.zdr) reasons.set(slug, 'retains data');
    else if (denyDataCollection && endpoint.collectsData) reasons.set(slug, 'collects data');
    else if ((only.length > 0 && !only.includes(slug)) || ignore.includes(slug))
      reasons.set(slug, 'is excluded by the preferences');
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

/** Returns the fields that an endpoint supports and that have a value. */
export function pickSupportedFields<V>(
  { parameters }: Endpoint,
  fields: Readonly<Record<string, V | undefined>>,
): Readonly<Record<string, V>> {
  const supported = Object.entries(fields).filter(([name, value]) => value !== undefined && parameters.includes(name));
  return Object.fromEntries(supported) as Readonly<Record<string, V>>;
}

/** Returns a language without its region: `en` for `en-US`. */
export function toPrimaryLanguage(language: string): string {
  return (language.split(/[-_]/)[0] as string).toLowerCase();
}
