/** The models that are sold, where they can be had and for how much. */
import { createHash } from 'node:crypto';
import { type PriceLine, priceToJson, type Tariff } from '#domain';
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
import { mediaTariff, modelTariff, serviceTariff } from './tariffs.ts';
import type { Voice, VoiceFile } from './voices-file.ts';

/** Where a model can be had. */
export interface Endpoint
  extends Omit<OfferFile, 'margin'>,
    Pick<EndpointFile, 'searchFee'>,
    Pick<MediaEndpointFile, 'imagesPerCall' | 'wire'> {
  /** The provider as requests and the books name it. */
  readonly slug: string;
  /** What it costs and is sold for, and who invoices it. */
  readonly tariff: Tariff;
  /** Request fields that the upstream knows; it may refuse others. */
  readonly parameters: readonly string[];
  readonly speaks: readonly Language[];
  readonly zdr: boolean;
  readonly collectsData: boolean;
  readonly quantization: Quantization;
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
  /** What it may speak with; the first is what it does by default. */
  readonly voices: readonly Voice[];
  readonly endpoints: readonly Endpoint[];
}

export type AnyModel = Model | MediaModel;

export interface PriceList {
  readonly version: string;
  readonly lines: readonly PriceLine[];
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

export class Catalogue {
  private readonly byName: ReadonlyMap<string, AnyModel>;

  private constructor(
    readonly models: readonly AnyModel[],
    readonly priceList: PriceList,
    private readonly services: readonly Tariff[],
    /** Those that keep nothing of what they are asked. */
    private readonly forgetful: ReadonlySet<string>,
  ) {
    this.byName = new Map(models.flatMap((model) => [model.id, ...(model.aliases ?? [])].map((name) => [name, model])));
  }

  /** @throws DataFileError that names the invalid model */
  static of(
    files: readonly AnyModelFile[],
    lists: ParameterLists = {},
    fees: readonly FeeFile[] = [],
    voices: readonly VoiceFile[] = [],
  ): Catalogue {
    assertConsistent(files, lists, fees);
    const models = files.map((file) => (isMedia(file) ? mediaModelOf(file, lists, voices) : modelOf(file, lists)));
    const services = fees.map(serviceTariff);
    const offers: readonly Endpoint[] = models.flatMap(({ endpoints }) => endpoints);
    const forgetful = new Set(fees.flatMap(({ name, zdr }) => (zdr ? [name] : [])));
    const priceList = priceListOf([...offers.map(({ tariff }) => tariff), ...services]);
    return new Catalogue(models, priceList, services, forgetful);
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
      this.services,
      this.forgetful,
    );
  }

  /** Finds a model by its id or an alias. */
  find(name: string): AnyModel | undefined {
    return this.byName.get(name);
  }

  /** Whether a service beside the models keeps nothing of what it is asked. */
  keepsNothing(service: string): boolean {
    return this.forgetful.has(service);
  }

  /** What a service beside the models is sold by; undefined when it is not sold. */
  service(name: string): Tariff | undefined {
    return this.services.find(({ of }) => of === name);
  }
}

function within<M extends AnyModel>(model: M, objection: (upstream: string) => string | undefined): M {
  const all: readonly Endpoint[] = model.endpoints;
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
      const { usdPerMillionTokens, usdPerRequest, ...offer } = endpoint;
      return endpointOf(offer, modelTariff(model.id, endpoint), lists);
    }),
  };
}

function mediaModelOf(
  { endpoints, released, ...model }: MediaModelFile,
  lists: ParameterLists,
  voices: readonly VoiceFile[],
): MediaModel {
  return {
    ...model,
    voices: voices.filter(({ models }) => models.includes(model.id)).map(({ models, ...voice }) => voice),
    created: secondsOf(released),
    endpoints: endpoints.map((endpoint) => {
      const { usdPerUnit, usdPerMillionTokens, ...offer } = endpoint;
      return endpointOf(offer, mediaTariff(model.id, endpoint), lists);
    }),
  };
}

function secondsOf(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

function endpointOf({ parameters, margin, ...offer }: OfferFile, tariff: Tariff, lists: ParameterLists): Endpoint {
  return {
    zdr: false,
    collectsData: false,
    quantization: 'unknown',
    speaks: ['chat'],
    ...offer,
    slug: slugOf(offer.provider),
    tariff,
    parameters: typeof parameters === 'string' ? (lists[parameters] ?? []) : parameters,
  };
}

/** The same prices have the same version, wherever and whenever they are read. */
function priceListOf(tariffs: readonly Tariff[]): PriceList {
  const lines = tariffs.map((tariff): PriceLine => ({ ...tariff, prices: tariff.prices.map(priceToJson) }));
  const version = createHash('sha256').update(JSON.stringify(lines)).digest('hex').slice(0, 16);
  return { version, lines };
}
