/** Models, endpoints and data lookups as they are sold, converted from their files. */
import type { Tariff } from '#domain';
import type { DataEndpointFile } from './data-endpoint-file.ts';
import type { MediaEndpointFile, MediaModelFile } from './media-file.ts';
import {
  type ChatProtocol,
  type EndpointFile,
  type ModelFile,
  type OfferFile,
  type Quantization,
  toSlug,
  toUnixSeconds,
} from './model-file.ts';
import { type ModelRules, type RuleSets, resolveRules } from './model-rules.ts';
import { getRetirementDay } from './retirement.ts';
import { toDataTariff, toMediaTariff, toModelTariff } from './tariffs.ts';
import type { Voice, VoiceFile } from './voices-file.ts';

/** A model or data lookup at one provider, with its prices. */
export interface Endpoint
  extends Omit<OfferFile, 'margin' | 'modelRules'>,
    Pick<EndpointFile, 'searchFee' | 'searchOnRequest' | 'enclave' | 'eventBytes' | 'eventTokens' | 'templateTokens'>,
    Pick<MediaEndpointFile, 'imagesPerCall' | 'wire'> {
  /** The provider's slug, as used in requests and in the ledger. */
  readonly slug: string;
  /** Costs, prices and the creditor. */
  readonly tariff: Tariff;
  /** Request fields that the endpoint supports; it may reject others. */
  readonly parameters: readonly string[];
  /** What the model accepts apart from the fields that the endpoint supports. */
  readonly modelRules: ModelRules;
  readonly speaks: readonly ChatProtocol[];
  readonly zdr: boolean;
  readonly collectsData: boolean;
  readonly quantization: Quantization;
}

interface BaseModel {
  /** Reasons why endpoints of the data files cannot be called, by slug. */
  readonly excludedEndpoints?: Readonly<Record<string, string>>;
  /** Unix seconds. */
  readonly created: number;
  readonly outputs: readonly string[];
}

/** A model that is priced by tokens. */
export interface TokenPricedModel extends BaseModel, Omit<ModelFile, 'endpoints' | 'released' | 'outputs'> {
  readonly endpoints: readonly Endpoint[];
}

/** A model that is priced by images, seconds, minutes, characters or clips. */
export interface MediaModel extends BaseModel, Omit<MediaModelFile, 'endpoints' | 'released' | 'outputs'> {
  /** Voices of a text-to-speech model; the first one is the default. */
  readonly voices: readonly Voice[];
  readonly endpoints: readonly Endpoint[];
}

export type AnyModel = TokenPricedModel | MediaModel;

/** A data lookup with its only endpoint. */
export interface DataEndpoint extends Omit<DataEndpointFile, 'baseUsd' | 'margin' | 'guessed' | 'billed'> {
  /** Path of the invoiced results in the response, and the request field that limits them. */
  readonly billed?: Pick<NonNullable<DataEndpointFile['billed']>, 'count' | 'cap'>;
  readonly endpoint: Endpoint;
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

/** What endpoints refer to by name. */
export interface References {
  readonly lists: ParameterLists;
  readonly modelRules: RuleSets;
}

/** Converts a validated model of the files. */
export function toModel({ endpoints, released, ...model }: ModelFile, references: References): TokenPricedModel {
  return {
    ...model,
    ...toRetires({ ...model, endpoints }),
    created: toUnixSeconds(released),
    outputs: model.outputs ?? ['text'],
    endpoints: endpoints.map((endpoint) => {
      const { usdPerMillionTokens, usdPerRequest, tiers, ...endpointFields } = endpoint;
      return toEndpoint(endpointFields, toModelTariff(model.id, endpoint), references);
    }),
  };
}

/** @param voices of all models */
export function toMediaModel(
  { endpoints, released, ...model }: MediaModelFile,
  references: References,
  voices: readonly VoiceFile[],
): MediaModel {
  return {
    ...model,
    ...toRetires({ ...model, endpoints }),
    voices: voices.filter(({ models }) => models.includes(model.id)).map(({ models, ...voice }) => voice),
    created: toUnixSeconds(released),
    endpoints: endpoints.map((endpoint) => {
      const { usdPerUnit, usdPerMillionTokens, ...endpointFields } = endpoint;
      return toEndpoint(endpointFields, toMediaTariff(model.id, endpoint), references);
    }),
  };
}

export function toDataEndpoint(file: DataEndpointFile): DataEndpoint {
  const { baseUsd, margin, guessed, billed, ...described } = file;
  const tariff = toDataTariff(file);
  const { provider, upstream } = file;
  const endpoint = toEndpoint({ provider, upstream, margin, model: tariff.of, parameters: [] }, tariff, {
    lists: {},
    modelRules: {},
  });
  return { ...described, ...(billed ? { billed: { count: billed.count, cap: billed.cap } } : {}), endpoint };
}

/** Sets the day on which a model ends, so that it does not depend on which of its endpoints are available here. */
function toRetires(model: Parameters<typeof getRetirementDay>[0]): { readonly retires?: string } {
  const retires = getRetirementDay(model);
  return retires === undefined ? {} : { retires };
}

function toEndpoint(
  { parameters, modelRules, margin, ...endpointFields }: OfferFile,
  tariff: Tariff,
  references: References,
): Endpoint {
  return {
    zdr: false,
    collectsData: false,
    quantization: 'unknown',
    speaks: ['chat'],
    ...endpointFields,
    slug: toSlug(endpointFields.provider),
    tariff,
    parameters: typeof parameters === 'string' ? (references.lists[parameters] ?? []) : parameters,
    modelRules: resolveRules(modelRules, parameters, references.modelRules),
  };
}
