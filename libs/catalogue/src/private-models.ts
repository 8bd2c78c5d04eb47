/**
 * Private models: their requests are encrypted for an enclave, so that nothing which depends on reading a request can be said of
 * one. Their ids show what they are, since clients choose them by the prefix.
 */
import type { MediaModelFile } from './media-file.ts';
import { describeModel, type EndpointFile, type ModelFile, type PrivacyLevel } from './model-file.ts';
import { createDataFileError, type FieldLocation, toFieldLocation, withParent } from './validation-rules.ts';

type AnyModelFile = ModelFile | MediaModelFile;

/** What the ids of private models begin with, and no other name of a model does. */
export const PRIVATE_PREFIX = 'private/';

/** What the vendors of enclaves speak. */
const PROTOCOL = 'ehbp';

/** Is of a model that only an enclave can read requests to: it is reached through a program of the client's own. */
export function isPrivate({ privacy }: { readonly privacy: PrivacyLevel }): boolean {
  return privacy === 'e2e';
}

/** What would have to be read in a request or an answer. */
const OF_READABLE_MODELS = ['variants', 'routing', 'searchesWeb', 'imageTokens'] as const;
const OF_READABLE_ENDPOINTS = ['searchFee', 'speaks', 'routes'] as const;
/** All but the last must be there. */
const OF_ENCLAVES = ['enclave', 'eventBytes', 'templateTokens', 'eventTokens'] as const;

/**
 * Checks that a model is private, or not, in all that is said of it.
 * @throws DataFileError
 */
export function assertPrivacy(model: AnyModelFile, place: FieldLocation): void {
  const named = (name: string) => name.startsWith(PRIVATE_PREFIX);
  const isNamed = named(model.id);
  if (isNamed !== isPrivate(model))
    throw createDataFileError(
      withParent(place, 'privacy'),
      `must be e2e exactly where the id begins with ${PRIVATE_PREFIX}`,
    );
  for (const [a, alias] of (model.aliases ?? []).entries())
    if (named(alias) !== isNamed)
      throw createDataFileError(
        withParent(place, 'aliases', a),
        `must begin with ${PRIVATE_PREFIX} exactly where the id does`,
      );
  if (!isNamed) assertReadable(model, place);
  else if (model.type === 'chat') assertPrivate(model, place);
  else throw createDataFileError(withParent(place, 'type'), 'must be chat, which all private models are');
}

function assertReadable(model: AnyModelFile, place: FieldLocation): void {
  for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
    const extra = OF_ENCLAVES.find((field) => endpoint[field] !== undefined);
    if (extra)
      throw createDataFileError(withParent(place, 'endpoints', e, extra), 'must be there for private models alone');
  }
  for (const [suffix, variant] of Object.entries((model as ModelFile).variants ?? {}))
    if (variant.startsWith(PRIVATE_PREFIX))
      throw createDataFileError(withParent(place, 'variants', suffix), `names "${variant}", which is a private model`);
}

/** Pictures would hide in the ciphertext how many tokens they are. */
function assertPrivate(model: ModelFile, place: FieldLocation): void {
  for (const field of ['inputs', 'outputs'] as const)
    if (model[field]?.some((each) => each !== 'text'))
      throw createDataFileError(withParent(place, field), 'must be text alone');
  const unreadable = (field: string, ...path: (string | number)[]) =>
    createDataFileError(
      withParent(place, ...path, field),
      'must not be there for a private model, whose requests nobody can read',
    );
  const extra = OF_READABLE_MODELS.find((field) => model[field] !== undefined);
  if (extra) throw unreadable(extra);
  const [endpoint, another] = model.endpoints;
  if (!endpoint || another)
    throw createDataFileError(
      withParent(place, 'endpoints'),
      'must be one: what is encrypted for an enclave opens in no other',
    );
  const misplaced = OF_READABLE_ENDPOINTS.find((field) => endpoint[field] !== undefined);
  if (misplaced) throw unreadable(misplaced, 'endpoints', 0);
  const missing = OF_ENCLAVES.slice(0, -1).find((field) => endpoint[field] === undefined);
  if (missing)
    throw createDataFileError(withParent(place, 'endpoints', 0, missing), 'must be there for a private model');
  for (const unit of ['input', 'output'] as const)
    if (Number(endpoint.usdPerMillionTokens[unit]) === 0)
      // What is free has no end: an answer is cut where its money is used up.
      throw createDataFileError(
        withParent(place, 'endpoints', 0, 'usdPerMillionTokens', unit),
        'must be above 0 for a private model',
      );
}

/** A vendor as far as it matters who may be had from it. */
interface EnclaveVendor {
  readonly slug: string;
  readonly protocol: string;
  readonly baseUrl: string;
}

/**
 * Checks across files: enclaves serve private models alone, and each serves one, or a cheap name would buy a dear answer.
 * @throws DataFileError whose path begins with the index of the model
 */
export function assertEnclaves(models: readonly AnyModelFile[], vendors: readonly EnclaveVendor[]): void {
  const known = new Map(vendors.map((vendor) => [vendor.slug, vendor]));
  const taken = new Map<string, string>();
  for (const [i, model] of models.entries())
    for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
      const at = withParent(toFieldLocation(describeModel(model, i), i), 'endpoints', e);
      const vendor = known.get(endpoint.upstream);
      if (!vendor) continue; // said elsewhere
      const opens = vendor.protocol === PROTOCOL;
      const what = opens ? `speaks ${PROTOCOL}, as enclaves do` : `does not speak ${PROTOCOL}`;
      if (opens !== isPrivate(model))
        throw createDataFileError(withParent(at, 'upstream'), `names the provider "${vendor.slug}", which ${what}`);
      if (!opens) continue;
      const address = `${vendor.baseUrl}${endpoint.enclave}`;
      const other = taken.get(address);
      if (other)
        throw createDataFileError(
          withParent(at, 'enclave'),
          `is that of model "${other}" too, and an enclave serves one`,
        );
      taken.set(address, model.id);
    }
}
