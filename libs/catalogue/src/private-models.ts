/**
 * Private models. Their requests are encrypted for an enclave, so the models cannot have fields that depend on reading
 * a request. Clients recognise private models by the prefix of their ids.
 */
import type { MediaModelFile } from './media-file.ts';
import { describeModel, type EndpointFile, type ModelFile, type PrivacyLevel } from './model-file.ts';
import { createDataFileError, type FieldLocation, toFieldLocation, withParent } from './validation-rules.ts';

type AnyModelFile = ModelFile | MediaModelFile;

/** Prefix of the ids and aliases of private models, and of no others. */
export const PRIVATE_PREFIX = 'private/';

/** Protocol of providers with enclaves: Encrypted HTTP Body Protocol. */
const ENCLAVE_PROTOCOL = 'ehbp';

/** Whether only an enclave can read the requests of a model. Clients call such a model through a local proxy. */
export function isPrivate({ privacy }: { readonly privacy: PrivacyLevel }): boolean {
  return privacy === 'e2e';
}

/** Fields whose features require reading a request or a response. */
const NON_PRIVATE_MODEL_FIELDS = ['variants', 'routing', 'searchesWeb', 'imageTokens'] as const;
const NON_PRIVATE_ENDPOINT_FIELDS = ['searchFee', 'speaks', 'routes'] as const;
/** Fields of endpoints with an enclave. All but the last are required. */
const ENCLAVE_FIELDS = ['enclave', 'eventBytes', 'templateTokens', 'eventTokens'] as const;

/**
 * Checks that the id, the aliases and all fields of a model agree on whether it is private.
 * @throws DataFileError
 */
export function assertPrivacy(model: AnyModelFile, location: FieldLocation): void {
  const isPrivateName = (name: string) => name.startsWith(PRIVATE_PREFIX);
  const hasPrivateId = isPrivateName(model.id);
  if (hasPrivateId !== isPrivate(model))
    throw createDataFileError(
      withParent(location, 'privacy'),
      `must be e2e if and only if the id begins with ${PRIVATE_PREFIX}`,
    );
  for (const [a, alias] of (model.aliases ?? []).entries())
    if (isPrivateName(alias) !== hasPrivateId)
      throw createDataFileError(
        withParent(location, 'aliases', a),
        `must begin with ${PRIVATE_PREFIX} if and only if the id does`,
      );
  if (!hasPrivateId) assertNonPrivate(model, location);
  else if (model.type === 'chat') assertPrivate(model, location);
  else throw createDataFileError(withParent(location, 'type'), 'must be chat for a private model');
}

function assertNonPrivate(model: AnyModelFile, location: FieldLocation): void {
  for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
    const extra = ENCLAVE_FIELDS.find((field) => endpoint[field] !== undefined);
    if (extra)
      throw createDataFileError(withParent(location, 'endpoints', e, extra), 'is only allowed for private models');
  }
  for (const [suffix, variant] of Object.entries((model as ModelFile).variants ?? {}))
    if (variant.startsWith(PRIVATE_PREFIX))
      throw createDataFileError(
        withParent(location, 'variants', suffix),
        `names "${variant}", which is a private model`,
      );
}

/** Checks a private model. It may use only text: the number of tokens of an encrypted image cannot be estimated. */
function assertPrivate(model: ModelFile, location: FieldLocation): void {
  for (const field of ['inputs', 'outputs'] as const)
    if (model[field]?.some((modality) => modality !== 'text'))
      throw createDataFileError(withParent(location, field), 'must only contain text');
  const createMisplacedFieldError = (field: string, ...path: (string | number)[]) =>
    createDataFileError(
      withParent(location, ...path, field),
      'is not allowed for a private model, because its requests cannot be read',
    );
  const extra = NON_PRIVATE_MODEL_FIELDS.find((field) => model[field] !== undefined);
  if (extra) throw createMisplacedFieldError(extra);
  const [endpoint, another] = model.endpoints;
  if (!endpoint || another)
    throw createDataFileError(
      withParent(location, 'endpoints'),
      'must have exactly one entry, because only one enclave can decrypt a request',
    );
  const misplaced = NON_PRIVATE_ENDPOINT_FIELDS.find((field) => endpoint[field] !== undefined);
  if (misplaced) throw createMisplacedFieldError(misplaced, 'endpoints', 0);
  const missing = ENCLAVE_FIELDS.slice(0, -1).find((field) => endpoint[field] === undefined);
  if (missing)
    throw createDataFileError(withParent(location, 'endpoints', 0, missing), 'is required for a private model');
  for (const unit of ['input', 'output'] as const)
    if (Number(endpoint.usdPerMillionTokens[unit]) === 0)
      // A response is aborted when its hold is used up, so a free one would have no limit.
      throw createDataFileError(
        withParent(location, 'endpoints', 0, 'usdPerMillionTokens', unit),
        'must be above 0 for a private model',
      );
}

/** The fields of a provider that determine which models it may serve. */
interface EnclaveProvider {
  readonly slug: string;
  readonly protocol: string;
  readonly baseUrl: string;
}

/**
 * Checks across files that enclaves serve all private models and no others, and each enclave only one. If an enclave
 * served two, a request at the price of the cheap one could be served by the expensive one.
 * @throws DataFileError with a path that starts with the index of the model
 */
export function assertEnclaves(models: readonly AnyModelFile[], providers: readonly EnclaveProvider[]): void {
  const providersBySlug = new Map(providers.map((provider) => [provider.slug, provider]));
  const modelsByAddress = new Map<string, string>();
  for (const [i, model] of models.entries())
    for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
      const location = withParent(toFieldLocation(describeModel(model, i), i), 'endpoints', e);
      const provider = providersBySlug.get(endpoint.upstream);
      if (!provider) continue; // `linkProviders` reports it
      const isEnclaveProvider = provider.protocol === ENCLAVE_PROTOCOL;
      const problem = isEnclaveProvider
        ? `supports ${ENCLAVE_PROTOCOL}, the protocol of enclaves`
        : `does not support ${ENCLAVE_PROTOCOL}`;
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
          `is that of model "${other}", but an enclave serves only one model`,
        );
      modelsByAddress.set(address, model.id);
    }
}
