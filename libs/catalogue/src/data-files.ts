/** Validates data files: models of every type, lists of parameters, fees. */
import { assertFreeTierPrices } from './free-tier.ts';
import {
  assertConsistentMediaModel,
  audioModel,
  imageModel,
  type MediaModelFile,
  type MediaType,
  videoModel,
} from './media-file.ts';
import {
  chatModel,
  describeModel,
  embeddingModel,
  MODEL_TYPES,
  type ModelFile,
  type ModelType,
  type PriceSource,
  priceSource,
  toSlug,
} from './model-file.ts';
import type { RuleSets } from './model-rules.ts';
import { assertPrivacy } from './private-models.ts';
import { assertSuccessors } from './retirement.ts';
import {
  amount,
  anyObject,
  count,
  createDataFileError,
  DataFileError,
  enumRule,
  type FieldLocation,
  findDuplicate,
  flag,
  isText,
  mapRule,
  objectRule,
  optionalRule,
  text,
  texts,
  toFieldLocation,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

export type AnyModelFile = ModelFile | MediaModelFile;

/** Whether a model is priced by media units instead of tokens. */
export function isMediaModel<M extends { readonly type: ModelType }>(
  model: M,
): model is Extract<M, { readonly type: MediaType }> {
  return model.type !== 'chat' && model.type !== 'embedding';
}

const MODEL_RULES: Readonly<Record<ModelType, ValidationRule>> = {
  chat: chatModel,
  embedding: embeddingModel,
  image: imageModel,
  video: videoModel,
  audio: audioModel,
};

const modelTypeRule = enumRule(MODEL_TYPES);

/**
 * Validates one file of models.
 * @throws DataFileError with the model and the field
 */
export function parseModels(data: unknown): readonly AnyModelFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of models', []);
  for (const [i, entry] of data.entries()) assertModel(entry, toFieldLocation(describeModel(entry, i), i));
  return data;
}

function assertModel(data: unknown, location: FieldLocation): asserts data is AnyModelFile {
  anyObject(data, location);
  const model = data as AnyModelFile;
  text(model.id, withParent(location, 'id'));
  modelTypeRule(model.type, withParent(location, 'type'));
  MODEL_RULES[model.type](data, location);
  if (isMediaModel(model)) assertConsistentMediaModel(model, location);
  else if (model.maxOutput > model.context)
    throw createDataFileError(withParent(location, 'maxOutput'), 'must not exceed its context');
  else if ((model.longOutput ?? 0) > model.maxOutput)
    throw createDataFileError(withParent(location, 'longOutput'), 'must not exceed its maxOutput');
  if (model.privacy === 'zdr' && !model.endpoints.some(({ zdr }) => zdr))
    throw createDataFileError(withParent(location, 'privacy'), 'is zdr, but none of its endpoints is');
  assertPrivacy(model, location);
  assertFreeTierPrices(model, location);
  const twice = findDuplicate(model.endpoints.map(({ provider }) => toSlug(provider)));
  if (twice)
    throw createDataFileError(
      withParent(location, 'endpoints', twice[1], 'provider'),
      `is ${twice[0]}, which another endpoint already has`,
    );
}

/**
 * Checks across files that names of models are unique, and that the variants, successors, lists, rules and fees of
 * models exist.
 * @throws DataFileError with a path that starts with the index of the model
 */
export function assertConsistentCatalogue(
  models: readonly AnyModelFile[],
  parameterLists: Readonly<Record<string, unknown>>,
  fees: readonly FeeFile[],
  ruleSets: RuleSets = {},
): void {
  const names = models.flatMap(({ id, aliases = [] }, i) => [
    { name: id, path: [i, 'id'] },
    ...aliases.map((name, a) => ({ name, path: [i, 'aliases', a] })),
  ]);
  const twice = findDuplicate(names.map(({ name }) => name));
  if (twice) throw new DataFileError(`model "${twice[0]}" is defined twice`, names[twice[1]]?.path ?? []);
  assertSuccessors(models);
  const types = new Map(models.map(({ id, type }) => [id, type]));
  for (const [i, model] of models.entries()) {
    const location = toFieldLocation(describeModel(model, i), i);
    for (const [suffix, variant] of Object.entries(isMediaModel(model) ? {} : (model.variants ?? {})))
      if (types.get(variant) !== 'chat')
        throw createDataFileError(
          withParent(location, 'variants', suffix),
          `names "${variant}", which is not a chat model`,
        );
    for (const [e, { parameters }] of model.endpoints.entries())
      if (typeof parameters === 'string' && !Object.hasOwn(parameterLists, parameters))
        throw createDataFileError(
          withParent(location, 'endpoints', e, 'parameters'),
          `names the list "${parameters}", which does not exist`,
        );
    for (const [e, { modelRules }] of model.endpoints.entries())
      if (typeof modelRules === 'string' && !Object.hasOwn(ruleSets, modelRules))
        throw createDataFileError(
          withParent(location, 'endpoints', e, 'modelRules'),
          `names the rules "${modelRules}", which do not exist`,
        );
    for (const [e, { searchFee }] of (isMediaModel(model) ? [] : model.endpoints).entries())
      if (searchFee !== undefined && !fees.some(({ name }) => name === searchFee))
        throw createDataFileError(
          withParent(location, 'endpoints', e, 'searchFee'),
          `names the fee "${searchFee}", which does not exist`,
        );
  }
}

const lists = mapRule(texts);

/** @throws DataFileError with the list */
export function parseParameterLists(data: unknown): Readonly<Record<string, readonly string[]>> {
  lists(data, toFieldLocation('the lists of parameters'));
  return data as Readonly<Record<string, readonly string[]>>;
}

/**
 * How many searches the hold of a request pays for if no request can limit them: at least `min`, and at most `max` if
 * the balance allows. Further searches are billed too.
 */
export interface HeldSearches {
  readonly min: number;
  readonly max: number;
  /** False if the provider invoices neither the results as input, nor the input again after a search. */
  readonly billsInput?: boolean;
}

/** A service with a fixed price, such as web search. */
export interface FeeFile {
  readonly name: string;
  readonly provider: string;
  /** Slug of the provider that is called and invoices the service; by default that of `provider`. */
  readonly upstream?: string;
  /** USD that the provider invoices per use. */
  readonly costUsd: string;
  /** USD that the provider of a web search invoices for each result beyond those that a search includes. */
  readonly costUsdPerExtraResult?: string;
  /** USD charged per use, or per request with any number of uses. A fee has exactly one of the two. */
  readonly priceUsd?: string;
  readonly priceUsdPerRequest?: string;
  /** The service retains no request data. */
  readonly zdr?: boolean;
  /** Where the provider offers by agreement to retain no request data. `ZDR_AGREEMENTS` lists such agreements. */
  readonly zdrByAgreement?: PriceSource;
  /** False if the search cannot be restricted to domains. */
  readonly includesDomains?: boolean;
  /** False if the search cannot exclude domains. */
  readonly excludesDomains?: boolean;
  /** Present if no request can limit how many searches the provider makes and invoices. */
  readonly heldSearches?: HeldSearches;
  /** Where the costs were found. */
  readonly source?: PriceSource;
}

const heldSearchesFields = objectRule({ min: count, max: count, billsInput: optionalRule(flag) });

const heldSearchesRule: ValidationRule = (value, location) => {
  heldSearchesFields(value, location);
  const { min, max } = value as HeldSearches;
  if (max < min) throw createDataFileError(withParent(location, 'max'), 'must not be below min');
};

const feeFields = objectRule({
  name: text,
  provider: text,
  upstream: optionalRule(text),
  costUsd: amount,
  costUsdPerExtraResult: optionalRule(amount),
  priceUsd: optionalRule(amount),
  priceUsdPerRequest: optionalRule(amount),
  zdr: optionalRule(flag),
  zdrByAgreement: optionalRule(priceSource),
  includesDomains: optionalRule(flag),
  excludesDomains: optionalRule(flag),
  heldSearches: optionalRule(heldSearchesRule),
  source: optionalRule(priceSource),
});

const fee: ValidationRule = (value, location) => {
  feeFields(value, location);
  const { priceUsd, priceUsdPerRequest } = value as FeeFile;
  if ((priceUsd === undefined) === (priceUsdPerRequest === undefined))
    throw createDataFileError(location, 'must have exactly one of priceUsd and priceUsdPerRequest');
};

/** @throws DataFileError with the fee and the field */
export function parseFees(data: unknown): readonly FeeFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of fees', []);
  for (const [i, entry] of data.entries())
    fee(entry, toFieldLocation(isText(entry?.name) ? `fee "${entry.name}"` : `fee ${i + 1}`, i));
  const twice = findDuplicate(data.map(({ name }) => name));
  if (twice) throw new DataFileError(`fee "${twice[0]}" is defined twice`, [twice[1], 'name']);
  return data;
}
