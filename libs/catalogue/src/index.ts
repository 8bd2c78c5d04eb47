export { Catalogue, type EndpointAvailability, type PriceList } from './catalogue.ts';
export type { AnyModel, DataEndpoint, Endpoint, MediaModel, TokenPricedModel } from './catalogue-entries.ts';
export {
  getShippedCatalogueDir,
  readCatalogue,
  readCatalogueStamp,
  readPayments,
  readProviders,
  readRuleSets,
} from './catalogue-files.ts';
export { DATA_PROVIDERS, type FieldCap, SOCIAL_PROVIDER, toDataPath } from './data-endpoint-file.ts';
export { DATA_FILE_SCHEMAS, MODEL_FILE_SCHEMA } from './data-file-schemas.ts';
export { type HeldSearches, isMediaModel, parseModels } from './data-files.ts';
export { type CatalogueEnd, listEnds } from './ends.ts';
export {
  type ErrorRuleFile,
  isOperatorProblem,
  type OperatorProblemReason,
  type OperatorProblemScope,
} from './error-rules.ts';
export { isDay } from './field-schemas.ts';
export { isFreeTier } from './free-tier.ts';
export { LISTING_PROVIDERS } from './listing-providers.ts';
export {
  MEDIA_CAPABILITIES,
  MEDIA_UNITS,
  type MediaChoice,
  type MediaChoices,
  type MediaModelFile,
  type MediaUnit,
  type WireMapping,
} from './media-file.ts';
export {
  type ChatProtocol,
  MODEL_TYPES,
  type ModelFile,
  type ModelType,
  type PrivacyLevel,
  QUANTIZATIONS,
  type Quantization,
  toSlug,
} from './model-file.ts';
export { compareModelList, type ModelDifference, parseModelList } from './model-list.ts';
export {
  EFFORTS,
  type Effort,
  isRejectedWithReasoning,
  type ModelRules,
  type RuleSets,
  supportsEffort,
} from './model-rules.ts';
export { importOpenRouterModels, type OpenRouterImport } from './openrouter.ts';
export { isPrivate, PRIVATE_PREFIX } from './private-models.ts';
export type { CredentialFile, ModelListFile, ProviderFile } from './provider-file.ts';
export {
  type Capability,
  type CapabilityRequirement,
  getProviderCapability,
  listRequirements,
} from './requirements.ts';
export { formatDay, hasRetired, isRetirementNear, type Retirement, toDayNumber } from './retirement.ts';
export {
  cachesForHour,
  calculateListPrice,
  calculateTierPrice,
  LIST_PRICE_TOKENS,
  LIST_PRICE_UNITS,
  listTiers,
} from './tariffs.ts';
export { ANY_LANGUAGE, type Voice } from './voices-file.ts';
