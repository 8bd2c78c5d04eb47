import { type Catalogue, PRIVATE_PREFIX } from '#catalogue';
import { InvalidRequestError } from '../errors.ts';
import { parseModelName } from '../routing/preferences.ts';

/**
 * Returns the ids that a list of permitted models means: aliases and names with suffixes become ids. Patterns stay as
 * they are, since they also permit later models. A misspelled id would permit nothing, so it is rejected.
 * @throws InvalidRequestError 400 that names an entry that is neither a model, nor a data lookup, nor a pattern
 */
export function resolvePermittedModels(models: readonly string[], catalogue: Catalogue): readonly string[] {
  const ids = models.map((name, i) => {
    if (name.includes('*') || isDataLookup(name, catalogue)) return name;
    const id = findModelId(name, catalogue);
    if (id === undefined)
      throw new InvalidRequestError(400, `models[${i}]: there is no model or data lookup "${name}"`, 'models');
    return id;
  });
  return [...new Set(ids)];
}

function isDataLookup(name: string, catalogue: Catalogue): boolean {
  const slash = name.indexOf('/');
  return catalogue.findDataEndpoint(name.slice(0, slash), name.slice(slash + 1)) !== undefined;
}

/** Also finds a model that is not offered at present or has retired: an existing key may name it. */
function findModelId(name: string, catalogue: Catalogue): string | undefined {
  if (name.startsWith(PRIVATE_PREFIX)) return catalogue.findModel(name)?.id;
  try {
    return parseModelName(name, catalogue).model.id;
  } catch (error) {
    if (error instanceof InvalidRequestError) return undefined;
    throw error;
  }
}
