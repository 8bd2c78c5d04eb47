/** Validates data files: models of every type, lists of parameters, fees. */
import { z } from 'zod';
import { amount, count, flag, mapSchema, priceSource, text, texts } from './field-schemas.ts';
import { checkFreeTierPrices } from './free-tier.ts';
import {
  type AnyModelFile,
  audioModel,
  checkMediaModel,
  imageModel,
  type MediaType,
  videoModel,
} from './media-file.ts';
import { chatModel, embeddingModel, type ModelType, toSlug } from './model-file.ts';
import { checkPrivacy } from './private-models.ts';
import {
  addCheck,
  findDuplicates,
  nameEntries,
  nameFile,
  type ReportProblem,
  type Valid,
  validate,
  validateNamedEntries,
} from './validation.ts';

/** Whether a model is priced by media units instead of tokens. */
export function isMediaModel<M extends { readonly type: ModelType }>(
  model: M,
): model is Extract<M, { readonly type: MediaType }> {
  return model.type !== 'chat' && model.type !== 'embedding';
}

export const models = z.array(
  addCheck(z.discriminatedUnion('type', [chatModel, embeddingModel, imageModel, videoModel, audioModel]), checkModel),
  'must be a list of models',
);

/**
 * Validates one file of models.
 * @throws DataFileError with the model and the field
 */
export function parseModels(data: unknown): readonly AnyModelFile[] {
  return validate(models, data, nameModels(data));
}

/** Names models in error messages. */
export function nameModels(data: unknown) {
  return nameEntries(data, 'model', ({ id }) => id);
}

function checkModel(model: AnyModelFile, report: ReportProblem): void {
  if (isMediaModel(model)) checkMediaModel(model, report);
  else if (model.maxOutput > model.context) report('must not exceed its context', 'maxOutput');
  else if ((model.longOutput ?? 0) > model.maxOutput) report('must not exceed its maxOutput', 'longOutput');
  if (model.privacy === 'zdr' && !model.endpoints.some(({ zdr }) => zdr))
    report('is zdr, but none of its endpoints is', 'privacy');
  checkPrivacy(model, report);
  checkFreeTierPrices(model, report);
  for (const [slug, e] of findDuplicates(model.endpoints.map(({ provider }) => toSlug(provider))))
    report(`is ${slug}, which another endpoint already has`, 'endpoints', e, 'provider');
}

export const parameterLists = mapSchema(texts);

/** @throws DataFileError with the list */
export function parseParameterLists(data: unknown): Valid<typeof parameterLists> {
  return validate(parameterLists, data, nameFile('the lists of parameters'));
}

/**
 * How many searches the hold of a request pays for if no request can limit them: at least `min`, and at most `max` if
 * the balance allows. Further searches are billed too.
 */
const heldSearches = addCheck(
  z.strictObject({
    min: count,
    max: count,
    billsInput: flag
      .optional()
      .describe('False if the provider invoices neither the results as input, nor the input again after a search.'),
  }),
  ({ min, max }, report) => {
    if (max < min) report('must not be below min', 'max');
  },
);
export type HeldSearches = Valid<typeof heldSearches>;

/** A service with a fixed price, such as web search. */
const fee = z.strictObject({
  name: text,
  provider: text,
  upstream: text
    .optional()
    .describe('Slug of the provider that is called and invoices the service; by default that of `provider`.'),
  costUsd: amount.describe('USD that the provider invoices per use.'),
  costUsdPerExtraResult: amount
    .optional()
    .describe('USD that the provider of a web search invoices for each result beyond those that a search includes.'),
  priceUsd: amount.optional().describe('USD charged per use. A fee has either this price or one per request.'),
  priceUsdPerRequest: amount.optional().describe('USD charged per request with any number of uses.'),
  zdr: flag.optional().describe('The service retains no request data.'),
  zdrByAgreement: priceSource
    .optional()
    .describe(
      'Where the provider offers by agreement to retain no request data. `ZDR_AGREEMENTS` lists such agreements.',
    ),
  includesDomains: flag.optional().describe('False if the search cannot be restricted to domains.'),
  excludesDomains: flag.optional().describe('False if the search cannot exclude domains.'),
  heldSearches: heldSearches
    .optional()
    .describe('Present if no request can limit how many searches the provider makes and invoices.'),
  source: priceSource.optional().describe('Where the costs were found.'),
});
export type FeeFile = Valid<typeof fee>;

export const fees = z.array(
  addCheck(fee, ({ priceUsd, priceUsdPerRequest }, report) => {
    if ((priceUsd === undefined) === (priceUsdPerRequest === undefined))
      report('must have exactly one of priceUsd and priceUsdPerRequest');
  }),
  'must be a list of fees',
);

/** @throws DataFileError with the fee and the field */
export function parseFees(data: unknown): readonly FeeFile[] {
  return validateNamedEntries(fees, data, 'fee', 'name');
}
