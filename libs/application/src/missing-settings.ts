import type { Catalogue } from '#catalogue';
import { InvalidRequestError } from './errors.ts';

/**
 * Requires that a provider of this installation offers an entry of the catalogue.
 * @param name the name of the entry in the catalogue
 * @param what names the entry to the caller, such as `The model "…"`
 * @throws InvalidRequestError 404 that names the settings that would make the entry available
 */
export function assertOffered(
  catalogue: Pick<Catalogue, 'listMissingSettings'>,
  name: string,
  what: string,
  param: string | null,
): void {
  const settings = catalogue.listMissingSettings(name);
  if (settings.length === 0) return;
  const message = `${what} is not available here: it requires ${settings.join(' or ')}`;
  throw new InvalidRequestError(404, message, param);
}
