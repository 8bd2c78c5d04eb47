export {
  type AnyModel,
  Catalogue,
  type DataEndpoint,
  type Endpoint,
  type MediaModel,
  type PriceList,
  type TokenPricedModel,
} from './catalogue.ts';
export { catalogueStamp, readCatalogue, readPayments, readProviders, shippedCatalogue } from './catalogue-files.ts';
export { DATA_PROVIDERS, type FieldCap, SOCIAL, toDataPath } from './data-endpoint-file.ts';
export { isMedia, parseModels } from './data-files.ts';
export {
  CAPABILITIES,
  type Choice,
  type Choices,
  MEDIA_UNITS,
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
export { type Imported, modelsFromOpenRouter } from './openrouter.ts';
export { isPrivate, PRIVATE_PREFIX } from './private-models.ts';
export type { CredentialFile, ProviderFile } from './provider-file.ts';
export { type Capability, type CapabilityRequirement, listRequirements, mediaCapability } from './requirements.ts';
export { calculateListPrice, calculateTierPrice, LISTED_TOKENS, LISTED_UNITS, listTiers } from './tariffs.ts';
export { ANY_LANGUAGE, type Voice } from './voices-file.ts';
