/** Converts the parameters of a request to the names and values that a provider uses. */
import type { MediaParameters, WireMapping } from '#application';

type Names = Readonly<Record<string, string>>;

/**
 * A value that the mapping of its parameter does not list is left out. Without a mapping the value is not changed.
 * @param defaultNames the provider's names of parameters for which the wire mapping has no name
 * @param bringsImage whether the request has an input image
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
