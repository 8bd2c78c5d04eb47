import type { Catalogue } from '#catalogue';
import type { Query } from '#domain';
import { isJsonObject, type JsonObject } from '#kernel';
import { requiresZdr } from './preferences.ts';

/** Parses the text of a form field. Invalid JSON is returned unchanged, and rejected with the other preferences. */
export function parseIfJson(provider: unknown): unknown {
  if (typeof provider !== 'string') return provider;
  try {
    return JSON.parse(provider);
  } catch {
    return provider; // invalid JSON
  }
}

/**
 * Whether nothing of a request may be retained: it says so in its `provider` object, or its source requires it.
 * @param provider the object, or its JSON in a form
 */
export function requestsZdr(
  { source, model }: Pick<Query, 'source' | 'model'>,
  provider: unknown,
  catalogue: Pick<Catalogue, 'findModel'>,
): boolean {
  const preferences = parseIfJson(provider);
  const match = catalogue.findModel(model);
  return (isJsonObject(preferences) && preferences.zdr === true) || (match !== undefined && requiresZdr(source, match));
}

/** A caller that excludes providers by their data policy does not expect the gateway to store its responses. */
export function forbidsRetention({ provider }: JsonObject): boolean {
  return isJsonObject(provider) && (provider.zdr === true || provider.data_collection === 'deny');
}
