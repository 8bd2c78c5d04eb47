/** What a vendor is told of a request's parameters: by its own names, and in its own words. */
import type { MediaParameters, WireMapping } from '#application';

type Names = Readonly<Record<string, string>>;

/**
 * @param usual the names that all models of the vendor have for a parameter, where that is not ours
 * @param bringsImage whether a picture is brought
 */
export function toProviderParameters(
  parameters: MediaParameters,
  { names = {}, words = {}, always = {}, withImage = {} }: WireMapping,
  { usual = {}, bringsImage = false }: { readonly usual?: Names; readonly bringsImage?: boolean } = {},
): Record<string, string | number | boolean> {
  const told: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(parameters)) {
    const theirs = words[name];
    const said = String(value);
    const word = theirs ? (Object.hasOwn(theirs, said) ? theirs[said] : undefined) : value;
    if (word !== undefined) told[names[name] ?? usual[name] ?? name] = word;
  }
  return { ...told, ...always, ...(bringsImage ? withImage.always : {}) };
}
