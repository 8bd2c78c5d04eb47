/** The models that are sold, where they can be had and for how much. */
import { createHash } from 'node:crypto';
import { type PriceListLine, priceFromJson, priceToJson, type Tariff } from '#domain';
import type { DataEndpointFile } from './data-endpoint-file.ts';
import { type AnyModelFile, assertConsistent, type FeeFile, isMedia } from './data-files.ts';
import type { MediaEndpointFile, MediaModelFile } from './media-file.ts';
import {
  type ChatProtocol,
  type EndpointFile,
  type ModelFile,
  type OfferFile,
  type Quantization,
  toSlug,
} from './model-file.ts';
import { dataTariff, mediaTariff, modelTariff, serviceTariff } from './tariffs.ts';
import type { Voice, VoiceFile } from './voices-file.ts';

/** Where a model can be had. */
export interface Endpoint
  extends Omit<OfferFile, 'margin'>,
    Pick<EndpointFile, 'searchFee' | 'enclave' | 'eventBytes' | 'eventTokens' | 'templateTokens'>,
    Pick<MediaEndpointFile, 'imagesPerCall' | 'wire'> {
  /** The provider as requests and the books name it. */
  readonly slug: string;
  /** What it costs and is sold for, and who invoices it. */
  readonly tariff: Tariff;
  /** Request fields that the upstream knows; it may refuse others. */
  readonly parameters: readonly string[];
  readonly speaks: readonly ChatProtocol[];
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
export interface TokenPricedModel extends Described, Omit<ModelFile, 'endpoints' | 'released' | 'outputs'> {
  readonly endpoints: readonly Endpoint[];
}

/** A model that is paid by images, seconds, minutes or characters. */
export interface MediaModel extends Described, Omit<MediaModelFile, 'endpoints' | 'released' | 'outputs'> {
  /** What it may speak with; the first is what it does by default. */
  readonly voices: readonly Voice[];
  readonly endpoints: readonly Endpoint[];
}

export type AnyModel = TokenPricedModel | MediaModel;

/** A lookup of data, and the one endpoint that serves it. */
export interface DataEndpoint extends Omit<DataEndpointFile, 'baseUsd' | 'margin' | 'guessed' | 'billed'> {
  /** Where the answer has the results that the vendor invoices, and which field of the request bounds them. */
  readonly billed?: Pick<NonNullable<DataEndpointFile['billed']>, 'count' | 'cap'>;
  readonly endpoint: Endpoint;
}

export interface PriceList {
  readonly version: string;
  readonly lines: readonly PriceListLine[];
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

/** What a catalogue is made of beside its models. */
export interface CatalogueFiles {
  readonly lists?: ParameterLists;
  readonly fees?: readonly FeeFile[];
  readonly voices?: readonly VoiceFile[];
  readonly dataEndpoints?: readonly DataEndpointFile[];
}

interface Parts {
  readonly models: readonly AnyModel[];
  readonly dataEndpoints: readonly DataEndpoint[];
  readonly services: readonly Tariff[];
  /** Services that keep nothing of what they are asked. */
  readonly forgetful: ReadonlySet<string>;
  readonly priceList: PriceList;
}

export class Catalogue {
  private readonly byName: ReadonlyMap<string, AnyModel>;
  private readonly byAction: ReadonlyMap<string, DataEndpoint>;

  private constructor(private readonly parts: Parts) {
    const { models, dataEndpoints } = parts;
    this.byName = new Map(models.flatMap((model) => [model.id, ...(model.aliases ?? [])].map((name) => [name, model])));
    this.byAction = new Map(dataEndpoints.map((each) => [each.endpoint.model, each]));
  }

  /** @throws DataFileError that names the invalid model */
  static of(
    files: readonly AnyModelFile[],
    { lists = {}, fees = [], voices = [], dataEndpoints: lookups = [] }: CatalogueFiles = {},
  ): Catalogue {
    assertConsistent(files, lists, fees);
    const models = files.map((file) => (isMedia(file) ? mediaModelOf(file, lists, voices) : modelOf(file, lists)));
    const services = fees.map(serviceTariff);
    const dataEndpoints = lookups.map(dataEndpointOf);
    const forgetful = new Set(fees.flatMap(({ name, zdr }) => (zdr ? [name] : [])));
    const offers: readonly Endpoint[] = models.flatMap(({ endpoints }) => endpoints);
    const sold = [...offers, ...dataEndpoints.map(({ endpoint }) => endpoint)].map(({ tariff }) => tariff);
    return new Catalogue({
      models,
      dataEndpoints,
      services,
      forgetful,
      priceList: priceListOf([...sold, ...services]),
    });
  }

  get models(): readonly AnyModel[] {
    return this.parts.models;
  }

  /** Lookups, in the order of their file. */
  get dataEndpoints(): readonly DataEndpoint[] {
    return this.parts.dataEndpoints;
  }

  get priceList(): PriceList {
    return this.parts.priceList;
  }

  /**
   * The same models at the same prices, without the endpoints that cannot be had here. The price list stays whole:
   * gateways with different credentials publish the same version.
   * @param objection why a vendor cannot be asked; undefined when it can
   */
  within(objection: (upstream: string) => string | undefined): Catalogue {
    return this.keeping((endpoint) => objection(endpoint.upstream) ?? endpoint);
  }

  /**
   * The same models and lookups at the prices of a list that was published before. What is not in that list is not there.
   */
  pricedBy(priceList: PriceList): Catalogue {
    const listed = new Map(priceList.lines.map((line) => [nameOf(line), line.prices.map(priceFromJson)]));
    const then = (tariff: Tariff): Tariff | undefined => {
      const prices = listed.get(nameOf(tariff));
      return prices && { ...tariff, prices };
    };
    const { parts } = this.keeping((endpoint) => {
      const tariff = then(endpoint.tariff);
      return tariff ? { ...endpoint, tariff } : 'was not sold at that time';
    });
    const dataEndpoints = parts.dataEndpoints.flatMap(asInvoicedThen);
    const services = parts.services.flatMap((each) => then(each) ?? []);
    return new Catalogue({ ...parts, dataEndpoints, services, priceList });
  }

  /** Finds a lookup by what its path names. */
  dataEndpoint(provider: string, action: string): DataEndpoint | undefined {
    return this.byAction.get(`${provider}/${action}`);
  }

  /** Finds a model by its id or an alias. */
  find(name: string): AnyModel | undefined {
    return this.byName.get(name);
  }

  /** Whether a service beside the models keeps nothing of what it is asked. */
  keepsNothing(service: string): boolean {
    return this.parts.forgetful.has(service);
  }

  /** What a service beside the models is sold by; undefined when it is not sold. */
  service(name: string): Tariff | undefined {
    return this.parts.services.find(({ of }) => of === name);
  }

  private keeping(keep: Keep): Catalogue {
    const models = this.models.map((model) => keeping(model, keep));
    const dataEndpoints = this.dataEndpoints.flatMap((each) => {
      const endpoint = keep(each.endpoint);
      return typeof endpoint === 'string' ? [] : [{ ...each, endpoint }];
    });
    return new Catalogue({ ...this.parts, models, dataEndpoints });
  }
}

/** What becomes of an endpoint, or why it is left out. */
type Keep = (endpoint: Endpoint) => Endpoint | string;

function keeping<M extends AnyModel>(model: M, keep: Keep): M {
  const left: Record<string, string> = { ...model.left };
  let same = true;
  const endpoints = model.endpoints.flatMap((each) => {
    const kept = keep(each);
    same &&= kept === each;
    if (typeof kept !== 'string') return [kept];
    left[each.slug] = kept;
    return [];
  });
  return same ? model : { ...model, endpoints, ...(Object.keys(left).length > 0 ? { left } : {}) };
}

/** A list that has a cost of results needs somebody to count them; one that has none has nothing to count. */
function asInvoicedThen(each: DataEndpoint): readonly DataEndpoint[] {
  const { billed, ...unbilled } = each;
  if (!each.endpoint.tariff.prices.some(({ unit }) => unit === 'result')) return [unbilled];
  return billed ? [each] : [];
}

/** What the lines of a price list are told apart by. */
function nameOf({ of, provider, creditor }: Pick<Tariff, 'of' | 'provider' | 'creditor'>): string {
  return [of, provider, creditor].join(' ');
}

function modelOf({ endpoints, released, ...model }: ModelFile, lists: ParameterLists): TokenPricedModel {
  return {
    ...model,
    created: secondsOf(released),
    outputs: model.outputs ?? ['text'],
    endpoints: endpoints.map((endpoint) => {
      const { usdPerMillionTokens, usdPerRequest, tiers, ...offer } = endpoint;
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

function dataEndpointOf(file: DataEndpointFile): DataEndpoint {
  const { baseUsd, margin, guessed, billed, ...described } = file;
  const tariff = dataTariff(file);
  const { provider, upstream } = file;
  const endpoint = endpointOf({ provider, upstream, margin, model: tariff.of, parameters: [] }, tariff, {});
  return { ...described, ...(billed ? { billed: { count: billed.count, cap: billed.cap } } : {}), endpoint };
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
    slug: toSlug(offer.provider),
    tariff,
    parameters: typeof parameters === 'string' ? (lists[parameters] ?? []) : parameters,
  };
}

/** The same prices have the same version, wherever and whenever they are read. */
function priceListOf(tariffs: readonly Tariff[]): PriceList {
  const lines = tariffs.map((tariff): PriceListLine => ({ ...tariff, prices: tariff.prices.map(priceToJson) }));
  const version = createHash('sha256').update(JSON.stringify(lines)).digest('hex').slice(0, 16);
  return { version, lines };
}
