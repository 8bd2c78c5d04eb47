/**
 * Private models. Their requests are encrypted for an enclave, so the models cannot have fields that depend on reading
 * a request. Clients recognise private models by the prefix of their ids.
 */
import type { AnyModelFile } from './media-file.ts';
import type { EndpointFile, ModelFile, PrivacyLevel } from './model-file.ts';
import type { ReportProblem } from './validation.ts';

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

/** Checks that the id, the aliases and all fields of a model agree on whether it is private. */
export function checkPrivacy(model: AnyModelFile, report: ReportProblem): void {
  const isPrivateName = (name: string) => name.startsWith(PRIVATE_PREFIX);
  const hasPrivateId = isPrivateName(model.id);
  if (hasPrivateId !== isPrivate(model)) {
    report(`must be e2e if and only if the id begins with ${PRIVATE_PREFIX}`, 'privacy');
    return;
  }
  for (const [a, alias] of (model.aliases ?? []).entries())
    if (isPrivateName(alias) !== hasPrivateId)
      report(`must begin with ${PRIVATE_PREFIX} if and only if the id does`, 'aliases', a);
  if (!hasPrivateId) checkNonPrivate(model, report);
  else if (model.type === 'chat') checkPrivate(model, report);
  else report('must be chat for a private model', 'type');
}

function checkNonPrivate(model: AnyModelFile, report: ReportProblem): void {
  for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries())
    for (const field of ENCLAVE_FIELDS)
      if (endpoint[field] !== undefined) report('is only allowed for private models', 'endpoints', e, field);
  for (const [suffix, variant] of Object.entries((model as ModelFile).variants ?? {}))
    if (variant.startsWith(PRIVATE_PREFIX)) report(`names "${variant}", which is a private model`, 'variants', suffix);
}

/** Checks a private model. It may use only text: the number of tokens of an encrypted image cannot be estimated. */
function checkPrivate(model: ModelFile, report: ReportProblem): void {
  const unreadable = 'is not allowed for a private model, because its requests cannot be read';
  for (const field of ['inputs', 'outputs'] as const)
    if (model[field]?.some((modality) => modality !== 'text')) report('must only contain text', field);
  for (const field of NON_PRIVATE_MODEL_FIELDS) if (model[field] !== undefined) report(unreadable, field);
  if (model.endpoints.length > 1)
    report('must have exactly one entry, because only one enclave can decrypt a request', 'endpoints');
  for (const [e, endpoint] of model.endpoints.entries()) {
    for (const field of NON_PRIVATE_ENDPOINT_FIELDS)
      if (endpoint[field] !== undefined) report(unreadable, 'endpoints', e, field);
    for (const field of ENCLAVE_FIELDS.slice(0, -1))
      if (endpoint[field] === undefined) report('is required for a private model', 'endpoints', e, field);
    for (const unit of ['input', 'output'] as const)
      if (Number(endpoint.usdPerMillionTokens[unit]) === 0)
        // A response is aborted when its hold is used up, so a free one would have no limit.
        report('must be above 0 for a private model', 'endpoints', e, 'usdPerMillionTokens', unit);
  }
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
 */
export function checkEnclaves(
  models: readonly AnyModelFile[],
  providers: readonly EnclaveProvider[],
  report: ReportProblem,
): void {
  const providersBySlug = new Map(providers.map((provider) => [provider.slug, provider]));
  const modelsByAddress = new Map<string, string>();
  for (const [i, model] of models.entries())
    for (const [e, endpoint] of (model.endpoints as readonly EndpointFile[]).entries()) {
      const provider = providersBySlug.get(endpoint.upstream);
      if (!provider) continue; // `checkUpstreams` reports it
      const isEnclaveProvider = provider.protocol === ENCLAVE_PROTOCOL;
      const problem = isEnclaveProvider
        ? `supports ${ENCLAVE_PROTOCOL}, the protocol of enclaves`
        : `does not support ${ENCLAVE_PROTOCOL}`;
      if (isEnclaveProvider !== isPrivate(model))
        report(`names the provider "${provider.slug}", which ${problem}`, i, 'endpoints', e, 'upstream');
      if (!isEnclaveProvider) continue;
      const address = `${provider.baseUrl}${endpoint.enclave}`;
      const other = modelsByAddress.get(address);
      if (other)
        report(`is that of model "${other}", but an enclave serves only one model`, i, 'endpoints', e, 'enclave');
      modelsByAddress.set(address, model.id);
    }
}
