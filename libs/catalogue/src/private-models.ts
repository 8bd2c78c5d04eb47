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
const ENCLAVE_PROTOCOL = 'ehbp';

/** Is of a model that only an enclave can read requests to: it is reached through a program of the client's own. */
export function isPrivate({ privacy }: { readonly privacy: PrivacyLevel }): boolean {
  return privacy === 'e2e';
}

/** What would have to be read in a request or an answer. */
const NON_PRIVATE_MODEL_FIELDS = ['variants', 'routing', 'searchesWeb', 'imageTokens'] as const;
const NON_PRIVATE_ENDPOINT_FIELDS = ['searchFee', 'speaks', 'routes'] as const;
/** All but the last must be there. */
const ENCLAVE_FIELDS = ['enclave', 'eventBytes', 'templateTokens', 'eventTokens'] as const;

/**
 * Checks that a model is private, or not, in all that is said of it.
 * @throws DataFileError
 */
export function assertPrivacy(model: AnyModelFile, location: FieldLocation): void {
  const isPrivateName = (name: string) => name.startsWith(PRIVATE_PREFIX);
  const hasPrivateId = isPrivateName(model.id);
  if (hasPrivateId !== isPrivate(model))
    throw createDataFileError(
      withParent(location, 'privacy'),
      `must be e2e exactly where the id begins with ${PRIVATE_PREFIX}`,
    );
  for (const [a, alias] of (model.aliases ?? []).entries())
    if (isPrivateName(alias) !== hasPrivateId)
      throw createDataFileError(
        withParent(location, 'aliases', a),
        `must begin with ${PRIVATE_PREFIX} exactly where the id does`,
      );
  if (!hasPrivateId) assertNonPrivate(model, location);
  else if (model.type === 'chat') assertPrivate(model, location);
  else throw createDataFileError(withParent(location, 'type'), 'must be chat, which all private models are');
}

function assertNonPrivate(model: AnyModelFile, location: FieldLocation): void {
  for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
    const extra = ENCLAVE_FIELDS.find((field) => endpoint[field] !== undefined);
    if (extra)
      throw createDataFileError(withParent(location, 'endpoints', e, extra), 'must be there for private models alone');
  }
  for (const [suffix, variant] of Object.entries((model as ModelFile).variants ?? {}))
    if (variant.startsWith(PRIVATE_PREFIX))
      throw createDataFileError(
        withParent(location, 'variants', suffix),
        `names "${variant}", which is a private model`,
      );
}

/** Pictures would hide in the ciphertext how many tokens they are. */
function assertPrivate(model: ModelFile, location: FieldLocation): void {
  for (const field of ['inputs', 'outputs'] as const)
    if (model[field]?.some((modality) => modality !== 'text'))
      throw createDataFileError(withParent(location, field), 'must be text alone');
  const createMisplacedFieldError = (field: string, ...path: (string | number)[]) =>
    createDataFileError(
      withParent(location, ...path, field),
      'must not be there for a private model, whose requests nobody can read',
    );
  const extra = NON_PRIVATE_MODEL_FIELDS.find((field) => model[field] !== undefined);
  if (extra) throw createMisplacedFieldError(extra);
  const [endpoint, another] = model.endpoints;
  if (!endpoint || another)
    throw createDataFileError(
      withParent(location, 'endpoints'),
      'must be one: what is encrypted for an enclave opens in no other',
    );
  const misplaced = NON_PRIVATE_ENDPOINT_FIELDS.find((field) => endpoint[field] !== undefined);
  if (misplaced) throw createMisplacedFieldError(misplaced, 'endpoints', 0);
  const missing = ENCLAVE_FIELDS.slice(0, -1).find((field) => endpoint[field] === undefined);
  if (missing)
    throw createDataFileError(withParent(location, 'endpoints', 0, missing), 'must be there for a private model');
  for (const unit of ['input', 'output'] as const)
    if (Number(endpoint.usdPerMillionTokens[unit]) === 0)
      // What is free has no end: an answer is cut where its money is used up.
      throw createDataFileError(
        withParent(location, 'endpoints', 0, 'usdPerMillionTokens', unit),
        'must be above 0 for a private model',
      );
}

/** A vendor as far as it matters who may be had from it. */
interface EnclaveProvider {
  readonly slug: string;
  readonly protocol: string;
  readonly baseUrl: string;
}

/**
 * Checks across files: enclaves serve private models alone, and each serves one, or a cheap name would buy a dear answer.
 * @throws DataFileError whose path begins with the index of the model
 */
export function assertEnclaves(models: readonly AnyModelFile[], providers: readonly EnclaveProvider[]): void {
  const providersBySlug = new Map(providers.map((provider) => [provider.slug, provider]));
  const modelsByAddress = new Map<string, string>();
  for (const [i, model] of models.entries())
    for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
      const location = withParent(toFieldLocation(describeModel(model, i), i), 'endpoints', e);
      const provider = providersBySlug.get(endpoint.upstream);
      if (!provider) continue; // said elsewhere
      const isEnclaveProvider = provider.protocol === ENCLAVE_PROTOCOL;
      const problem = isEnclaveProvider
        ? `speaks ${ENCLAVE_PROTOCOL}, as enclaves do`
        : `does not speak ${ENCLAVE_PROTOCOL}`;
      if (isEnclaveProvider !== isPrivate(model))
        throw createDataFileError(
          withParent(location, 'upstream'),
          `names the provider "${provider.slug}", which ${problem}`,
        );
      if (!isEnclaveProvider) continue;
      const address = `${provider.baseUrl}${endpoint.enclave}`;
      const other = modelsByAddress.get(address);
      if (other)
        throw createDataFileError(
          withParent(location, 'enclave'),
          `is that of model "${other}" too, and an enclave serves one`,
        );
      modelsByAddress.set(address, model.id);
    }
}
