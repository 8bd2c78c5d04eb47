export { Catalogue, type Endpoint, type Model, type PriceList } from './catalogue.ts';
export { catalogueStamp, readCatalogue, shippedCatalogue } from './catalogue-files.ts';
export {
  MODEL_TYPES,
  type ModelFile,
  type ModelType,
  modelsIn,
  type PrivacyLevel,
  QUANTIZATIONS,
  type Quantization,
  slugOf,
} from './model-file.ts';
export { type Imported, modelsFromOpenRouter } from './openrouter.ts';
