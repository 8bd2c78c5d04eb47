/** The models that are sold, where they can be had and for how much. */
import { createHash } from 'node:crypto';
import {
  type Fee,
  type PublishedRates,
  type PublishedUnitPrices,
  type Rates,
  ratesFrom,
  type UnitPrices,
  unitPricesFrom,
} from '#domain';
import { money } from '#kernel';
import { type AnyModelFile, assertConsistent, type FeeFile, isMedia } from './data-files.ts';
import type { MediaEndpointFile, MediaModelFile } from './media-file.ts';
import {
  type EndpointFile,
  type Language,
  type ModelFile,
  type OfferFile,
  type Quantization,
  slugOf,
} from './model-file.ts';
import { marginOf } from './rules.ts';

/** Where a model can be had. */
export interface Offer extends Omit<OfferFile, 'margin'> {
  /** The provider as requests and the books name it: who is owed for it. */
  readonly slug: string;
  /** Request fields that the upstream knows; it may refuse others. */
  readonly parameters: readonly string[];
  readonly zdr: boolean;
  readonly collectsData: boolean;
  readonly quantization: Quantization;
}

export interface Endpoint extends Offer, Pick<EndpointFile, 'searchFee'> {
  readonly speaks: readonly Language[];
  readonly rates: Rates;
}

export interface MediaEndpoint extends Offer {
  readonly prices: UnitPrices;
}

interface Described {
  /** Why endpoints that it has elsewhere are not among those that it has here, by their slugs. */
  readonly left?: Readonly<Record<string, string>>;
  /** Unix seconds. */
  readonly created: number;
  readonly outputs: readonly string[];
}

/** A model that is paid by tokens. */
export interface Model extends Described, Omit<ModelFile, 'endpoints' | 'released' | 'outputs'> {
  readonly endpoints: readonly Endpoint[];
}

/** A model that is paid by images, seconds, minutes or characters. */
export interface MediaModel extends Described, Omit<MediaModelFile, 'endpoints' | 'released' | 'outputs'> {
  readonly endpoints: readonly MediaEndpoint[];
}

export type AnyModel = Model | MediaModel;

export interface PriceList {
  readonly version: string;
  readonly rates: readonly PublishedRates[];
  readonly units: readonly PublishedUnitPrices[];
  readonly fees: readonly Fee[];
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

export class Catalogue {
  private readonly byName: ReadonlyMap<string, AnyModel>;

  private constructor(
    readonly models: readonly AnyModel[],
    readonly priceList: PriceList,
  ) {
    this.byName = new Map(models.flatMap((model) => [model.id, ...(model.aliases ?? [])].map((name) => [name, model])));
  }

  /** @throws Slip that names the invalid model */
  static of(files: readonly AnyModelFile[], lists: ParameterLists = {}, fees: readonly FeeFile[] = []): Catalogue {
    assertConsistent(files, lists, fees);
    const models = files.map((file) => (isMedia(file) ? mediaModelOf(file, lists) : modelOf(file, lists)));
    return new Catalogue(models, priceListOf(files, fees));
  }

  /**
   * The same models at the same prices, without the endpoints that cannot be had here. The price list stays whole:
   * gateways with different credentials publish the same version.
   * @param objection why a vendor cannot be asked; undefined when it can
   */
  within(objection: (upstream: string) => string | undefined): Catalogue {
    return new Catalogue(
      this.models.map((model) => within(model, objection)),
      this.priceList,
    );
  }

  /** Finds a model by its id or an alias. */
  find(name: string): AnyModel | undefined {
    return this.byName.get(name);
  }

  /** What a service beside the models costs; undefined when it is not sold. */
  feeFor(name: string): Fee | undefined {
    return this.priceList.fees.find((fee) => fee.name === name);
  }
}

function within<M extends AnyModel>(model: M, objection: (upstream: string) => string | undefined): M {
  const all: readonly Offer[] = model.endpoints;
  const reasons = all.map(({ slug, upstream }) => [slug, objection(upstream)] as const);
  const left = reasons.filter((each): each is [string, string] => each[1] !== undefined);
  if (left.length === 0) return model;
  const endpoints = all.filter((_, i) => reasons[i]?.[1] === undefined);
  return { ...model, endpoints, left: Object.fromEntries(left) };
}

function modelOf({ endpoints, released, ...model }: ModelFile, lists: ParameterLists): Model {
  return {
    ...model,
    created: secondsOf(released),
    outputs: model.outputs ?? ['text'],
    endpoints: endpoints.map((endpoint) => {
      const { usdPerMillionTokens, usdPerRequest, speaks = ['chat'], ...offer } = endpoint;
      return { ...offerOf(offer, lists), speaks, rates: ratesFrom(publishedRates(model.id, endpoint)) };
    }),
  };
}

function mediaModelOf({ endpoints, released, ...model }: MediaModelFile, lists: ParameterLists): MediaModel {
  return {
    ...model,
    created: secondsOf(released),
    endpoints: endpoints.map((endpoint) => {
      const { usdPerUnit, ...offer } = endpoint;
      return { ...offerOf(offer, lists), prices: unitPricesFrom(publishedUnitPrices(model.id, endpoint)) };
    }),
  };
}

function secondsOf(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

function offerOf({ parameters, margin, ...offer }: OfferFile, lists: ParameterLists): Offer {
  return {
    zdr: false,
    collectsData: false,
    quantization: 'unknown',
    ...offer,
    slug: slugOf(offer.provider),
    parameters: typeof parameters === 'string' ? (lists[parameters] ?? []) : parameters,
  };
}

function priceListOf(files: readonly AnyModelFile[], feeFiles: readonly FeeFile[]): PriceList {
  const rates: PublishedRates[] = [];
  const units: PublishedUnitPrices[] = [];
  for (const file of files) {
    if (isMedia(file)) units.push(...file.endpoints.map((endpoint) => publishedUnitPrices(file.id, endpoint)));
    else rates.push(...file.endpoints.map((endpoint) => publishedRates(file.id, endpoint)));
  }
  const fees = feeFiles.map(publishedFee);
  return { version: versionOf(rates, fees, units), rates, units, fees };
}

/** Token classes without a price of their own cost what their side costs: cached input as input, reasoning as output. */
function publishedRates(model: string, endpoint: EndpointFile): PublishedRates {
  const { input, output, cacheRead = input, cacheWrite = input, reasoning = output } = endpoint.usdPerMillionTokens;
  return {
    model,
    provider: slugOf(endpoint.provider),
    input: amount(input),
    cacheRead: amount(cacheRead),
    cacheWrite: amount(cacheWrite),
    output: amount(output),
    reasoning: amount(reasoning),
    request: amount(endpoint.usdPerRequest ?? '0'),
    marginBasisPoints: Number(marginOf(endpoint.margin)),
  };
}

function publishedUnitPrices(model: string, { provider, usdPerUnit, margin }: MediaEndpointFile): PublishedUnitPrices {
  return {
    model,
    provider: slugOf(provider),
    unit: usdPerUnit.unit,
    amount: amount(usdPerUnit.usd),
    variants: (usdPerUnit.variants ?? []).map(({ when, usd }) => ({ when, amount: amount(usd) })),
    marginBasisPoints: Number(marginOf(margin)),
  };
}

function publishedFee({ name, provider, costUsd, priceUsd }: FeeFile): Fee {
  return { name, provider: slugOf(provider), price: amount(priceUsd), cost: amount(costUsd) };
}

function amount(usd: string): string {
  return money.toJson(money.usd(usd));
}

/** The same prices have the same version, wherever and whenever they are read; those of before knew no units. */
function versionOf(
  rates: readonly PublishedRates[],
  fees: readonly Fee[],
  units: readonly PublishedUnitPrices[],
): string {
  return createHash('sha256')
    .update(JSON.stringify(units.length === 0 ? [rates, fees] : [rates, fees, units]))
    .digest('hex')
    .slice(0, 16);
}
