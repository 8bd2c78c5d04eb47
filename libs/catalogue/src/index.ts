export {
  type AnyModel,
  Catalogue,
  type DataEndpoint,
  type Endpoint,
  type MediaModel,
  type Model,
  type PriceList,
} from './catalogue.ts';
export { catalogueStamp, readCatalogue, readPayments, readProviders, shippedCatalogue } from './catalogue-files.ts';
export { type Cap, DATA_PROVIDERS, dataPathOf, SOCIAL } from './data-endpoint-file.ts';
export { isMedia, modelsIn } from './data-files.ts';
export {
  CAPABILITIES,
  type Choice,
  type Choices,
  MEDIA_UNITS,
  type MediaModelFile,
  type MediaUnit,
  type Wire,
} from './media-file.ts';
export {
  type Language,
  MODEL_TYPES,
  type ModelFile,
  type ModelType,
  type PrivacyLevel,
  QUANTIZATIONS,
  type Quantization,
  slugOf,
} from './model-file.ts';
export { type Imported, modelsFromOpenRouter } from './openrouter.ts';
export { isPrivate, PRIVATE_PREFIX } from './private-models.ts';
export type { CredentialFile, ProviderFile } from './provider-file.ts';
export { type Capability, type Demand, demandsOf, mediaCapability } from './requirements.ts';
export { LISTED_TOKENS, LISTED_UNITS, listPriceOf, tierPriceOf, tiersOf } from './tariffs.ts';
export { ANY_LANGUAGE, type Voice } from './voices-file.ts';
