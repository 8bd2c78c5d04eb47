/** What a vendor is told of a request's parameters: by its own names, and in its own words. */
import type { MediaParameters, WireMapping } from '#application';

type Names = Readonly<Record<string, string>>;

/**
 * @param defaultNames the names that all models of the vendor have for a parameter, where that is not ours
 * @param bringsImage whether a picture is brought
 */
export function toProviderParameters(
  parameters: MediaParameters,
  { names = {}, words = {}, always = {}, withImage = {} }: WireMapping,
  { defaultNames = {}, bringsImage = false }: { readonly defaultNames?: Names; readonly bringsImage?: boolean } = {},
): Record<string, string | number | boolean> {
  const providerParameters: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(parameters)) {
    const providerValues = words[name];
    const text = String(value);
    const providerValue = providerValues
      ? Object.hasOwn(providerValues, text)
        ? providerValues[text]
        : undefined
      : value;
    if (providerValue !== undefined) providerParameters[names[name] ?? defaultNames[name] ?? name] = providerValue;
  }
  return { ...providerParameters, ...always, ...(bringsImage ? withImage.always : {}) };
}
