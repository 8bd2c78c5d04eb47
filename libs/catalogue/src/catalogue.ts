/** The catalogue: models, data lookups and services with their endpoints and prices. */
import { createHash } from 'node:crypto';
import { type PriceListLine, parsePriceJson, type Tariff, toPriceJson } from '#domain';
import type { DataEndpointFile } from './data-endpoint-file.ts';
import { type AnyModelFile, assertConsistentCatalogue, type FeeFile, isMediaModel } from './data-files.ts';
import type { MediaEndpointFile, MediaModelFile } from './media-file.ts';
import {
  type ChatProtocol,
  type EndpointFile,
  type ModelFile,
  type OfferFile,
  type Quantization,
  toSlug,
} from './model-file.ts';
import { toDataTariff, toMediaTariff, toModelTariff, toServiceTariff } from './tariffs.ts';
import type { Voice, VoiceFile } from './voices-file.ts';

/** A model or data lookup at one provider, with its prices. */
export interface Endpoint
  extends Omit<OfferFile, 'margin'>,
    Pick<EndpointFile, 'searchFee' | 'enclave' | 'eventBytes' | 'eventTokens' | 'templateTokens'>,
    Pick<MediaEndpointFile, 'imagesPerCall' | 'wire'> {
  /** The provider's slug, as used in requests and in the ledger. */
  readonly slug: string;
  /** Costs, prices and the creditor. */
  readonly tariff: Tariff;
  /** Request fields that the endpoint supports; it may reject others. */
  readonly parameters: readonly string[];
  readonly speaks: readonly ChatProtocol[];
  readonly zdr: boolean;
  readonly collectsData: boolean;
  readonly quantization: Quantization;
}

/** Which providers can be called in an installation. */
export interface EndpointAvailability {
  /** Returns the setting that would make a provider available; undefined if it is available. */
  findMissingSetting(upstream: string): string | undefined;
  /** Whether the sandbox simulates a provider. */
  isSimulated(upstream: string): boolean;
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

export interface PriceList {
  readonly version: string;
  readonly lines: readonly PriceListLine[];
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

/** Parsed data files other than the models. */
export interface CatalogueFiles {
  readonly lists?: ParameterLists;
  readonly fees?: readonly FeeFile[];
  readonly voices?: readonly VoiceFile[];
  readonly dataEndpoints?: readonly DataEndpointFile[];
}

interface CatalogueContents {
  readonly models: readonly AnyModel[];
  readonly dataEndpoints: readonly DataEndpoint[];
  readonly services: readonly Tariff[];
  /** Services that retain no request data. */
  readonly zeroRetentionServices: ReadonlySet<string>;
  readonly priceList: PriceList;
  /** By the names of models, lookups and services that are not available. */
  readonly missingSettings: MissingSettings;
}

/** Settings, any of which would make an entry of the catalogue available, by its name. */
type MissingSettings = ReadonlyMap<string, readonly string[]>;

export class Catalogue {
  private readonly modelsByName: ReadonlyMap<string, AnyModel>;
  private readonly dataEndpointsByAction: ReadonlyMap<string, DataEndpoint>;

  private constructor(private readonly parts: CatalogueContents) {
    const { models, dataEndpoints } = parts;
    this.modelsByName = new Map(
      models.flatMap((model) => [model.id, ...(model.aliases ?? [])].map((name) => [name, model])),
    );
    this.dataEndpointsByAction = new Map(
      dataEndpoints.map((dataEndpoint) => [dataEndpoint.endpoint.model, dataEndpoint]),
    );
  }

  /** Builds the catalogue from validated files. @throws DataFileError if a name is not unique or does not exist */
  static fromFiles(
    files: readonly AnyModelFile[],
    { lists = {}, fees = [], voices = [], dataEndpoints: dataEndpointFiles = [] }: CatalogueFiles = {},
  ): Catalogue {
    assertConsistentCatalogue(files, lists, fees);
    const models = files.map((file) => (isMediaModel(file) ? toMediaModel(file, lists, voices) : toModel(file, lists)));
    const services = fees.map(toServiceTariff);
    const dataEndpoints = dataEndpointFiles.map(toDataEndpoint);
    const zeroRetentionServices = new Set(fees.flatMap(({ name, zdr }) => (zdr ? [name] : [])));
    const offers: readonly Endpoint[] = models.flatMap(({ endpoints }) => endpoints);
    const offerTariffs = [...offers, ...dataEndpoints.map(({ endpoint }) => endpoint)].map(({ tariff }) => tariff);
    return new Catalogue({
      models,
      dataEndpoints,
      services,
      zeroRetentionServices,
      priceList: toPriceList([...offerTariffs, ...services]),
      missingSettings: new Map(),
    });
  }

  get models(): readonly AnyModel[] {
    return this.parts.models;
  }

  /** Data lookups in the order of their file. */
  get dataEndpoints(): readonly DataEndpoint[] {
    return this.parts.dataEndpoints;
  }

  get priceList(): PriceList {
    return this.parts.priceList;
  }

  /**
   * Returns the catalogue without the endpoints of unavailable providers, and without the models that only the sandbox
   * serves if their providers are real. The price list is not changed, so that
   * gateways with different credentials publish the same version.
   */
  withAvailableEndpoints(providers: EndpointAvailability): Catalogue {
    const { parts } = this.mapEndpoints((endpoint) => {
      const setting = providers.findMissingSetting(endpoint.upstream);
      return setting === undefined ? endpoint : `requires ${setting}`;
    });
    const models = parts.models.filter(
      (model) =>
        isMediaModel(model) ||
        !model.simulated ||
        model.endpoints.some(({ upstream }) => providers.isSimulated(upstream)),
    );
    return new Catalogue({ ...parts, models, missingSettings: this.collectMissingSettings(providers) });
  }

  /**
   * Returns the catalogue at the prices of a list that was published before, without the endpoints, lookups and
   * services that this list does not have.
   */
  withPriceList(priceList: PriceList): Catalogue {
    const publishedPrices = new Map(priceList.lines.map((line) => [toLineKey(line), line.prices.map(parsePriceJson)]));
    const reprice = (tariff: Tariff): Tariff | undefined => {
      const prices = publishedPrices.get(toLineKey(tariff));
      return prices && { ...tariff, prices };
    };
    const { parts } = this.mapEndpoints((endpoint) => {
      const tariff = reprice(endpoint.tariff);
      return tariff ? { ...endpoint, tariff } : 'was not sold at that time';
    });
    const dataEndpoints = parts.dataEndpoints.flatMap(adaptBilling);
    const services = parts.services.flatMap((service) => reprice(service) ?? []);
    return new Catalogue({ ...parts, dataEndpoints, services, priceList });
  }

  /** Finds a data lookup by the provider class and the action in its path. */
  findDataEndpoint(provider: string, action: string): DataEndpoint | undefined {
    return this.dataEndpointsByAction.get(`${provider}/${action}`);
  }

  /**
   * Returns the settings, any of which would make a model, lookup or service available here; none if it is available.
   * @param name the id of a model, the provider class and action of a lookup, or the name of a service
   */
  listMissingSettings(name: string): readonly string[] {
    return this.parts.missingSettings.get(name) ?? [];
  }

  /** Finds a model by its id or an alias. */
  findModel(name: string): AnyModel | undefined {
    return this.modelsByName.get(name);
  }

  /** Whether a service, such as web search, retains no request data. */
  hasZeroDataRetention(service: string): boolean {
    return this.parts.zeroRetentionServices.has(service);
  }

  /** Returns the tariff of a service, such as web search; undefined if it is not sold. */
  findService(name: string): Tariff | undefined {
    return this.parts.services.find(({ of }) => of === name);
  }

  private collectMissingSettings(providers: EndpointAvailability): MissingSettings {
    const upstreams = [
      ...this.models.map(({ id, endpoints }) => [id, endpoints.map(({ upstream }) => upstream)] as const),
      ...this.dataEndpoints.map(({ endpoint }) => [endpoint.model, [endpoint.upstream]] as const),
      ...this.parts.services.map(({ of, provider }) => [of, [provider]] as const),
    ];
    const missing = upstreams.flatMap(([name, slugs]) => {
      const settings = slugs
        .map((slug) => providers.findMissingSetting(slug))
        .filter((setting) => setting !== undefined);
      return settings.length < slugs.length ? [] : [[name, [...new Set(settings)]] as const];
    });
    return new Map(missing);
  }

  private mapEndpoints(mapEndpoint: EndpointMapper): Catalogue {
    const models = this.models.map((model) => mapModelEndpoints(model, mapEndpoint));
    const dataEndpoints = this.dataEndpoints.flatMap((dataEndpoint) => {
      const endpoint = mapEndpoint(dataEndpoint.endpoint);
      return typeof endpoint === 'string' ? [] : [{ ...dataEndpoint, endpoint }];
    });
    return new Catalogue({ ...this.parts, models, dataEndpoints });
  }
}

/** Returns the mapped endpoint, or the reason why it is excluded. */
type EndpointMapper = (endpoint: Endpoint) => Endpoint | string;

function mapModelEndpoints<M extends AnyModel>(model: M, mapEndpoint: EndpointMapper): M {
  const excludedEndpoints: Record<string, string> = { ...model.excludedEndpoints };
  let isUnchanged = true;
  const endpoints = model.endpoints.flatMap((endpoint) => {
    const mapped = mapEndpoint(endpoint);
    isUnchanged &&= mapped === endpoint;
    if (typeof mapped !== 'string') return [mapped];
    excludedEndpoints[endpoint.slug] = mapped;
    return [];
  });
  return isUnchanged
    ? model
    : { ...model, endpoints, ...(Object.keys(excludedEndpoints).length > 0 ? { excludedEndpoints } : {}) };
}

/**
 * Adapts a lookup to the prices of an earlier list. Without a cost per result, no results are counted. A lookup with
 * such a cost is dropped if its file does not specify how to count them.
 */
function adaptBilling(dataEndpoint: DataEndpoint): readonly DataEndpoint[] {
  const { billed, ...unbilled } = dataEndpoint;
  if (!dataEndpoint.endpoint.tariff.prices.some(({ unit }) => unit === 'result')) return [unbilled];
  return billed ? [dataEndpoint] : [];
}

/** Returns the key that identifies a line of a price list. */
function toLineKey({ of, provider, creditor }: Pick<Tariff, 'of' | 'provider' | 'creditor'>): string {
  return [of, provider, creditor].join(' ');
}

function toModel({ endpoints, released, ...model }: ModelFile, lists: ParameterLists): TokenPricedModel {
  return {
    ...model,
    created: toUnixSeconds(released),
    outputs: model.outputs ?? ['text'],
    endpoints: endpoints.map((endpoint) => {
      const { usdPerMillionTokens, usdPerRequest, tiers, ...endpointFields } = endpoint;
      return toEndpoint(endpointFields, toModelTariff(model.id, endpoint), lists);
    }),
  };
}

function toMediaModel(
  { endpoints, released, ...model }: MediaModelFile,
  lists: ParameterLists,
  voices: readonly VoiceFile[],
): MediaModel {
  return {
    ...model,
    voices: voices.filter(({ models }) => models.includes(model.id)).map(({ models, ...voice }) => voice),
    created: toUnixSeconds(released),
    endpoints: endpoints.map((endpoint) => {
      const { usdPerUnit, usdPerMillionTokens, ...endpointFields } = endpoint;
      return toEndpoint(endpointFields, toMediaTariff(model.id, endpoint), lists);
    }),
  };
}

function toDataEndpoint(file: DataEndpointFile): DataEndpoint {
  const { baseUsd, margin, guessed, billed, ...described } = file;
  const tariff = toDataTariff(file);
  const { provider, upstream } = file;
  const endpoint = toEndpoint({ provider, upstream, margin, model: tariff.of, parameters: [] }, tariff, {});
  return { ...described, ...(billed ? { billed: { count: billed.count, cap: billed.cap } } : {}), endpoint };
}

function toUnixSeconds(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

function toEndpoint(
  { parameters, margin, ...endpointFields }: OfferFile,
  tariff: Tariff,
  lists: ParameterLists,
): Endpoint {
  return {
    zdr: false,
    collectsData: false,
    quantization: 'unknown',
    speaks: ['chat'],
    ...endpointFields,
    slug: toSlug(endpointFields.provider),
    tariff,
    parameters: typeof parameters === 'string' ? (lists[parameters] ?? []) : parameters,
  };
}

/** Derives the version from the lines, so that equal prices have the same version in every process. */
function toPriceList(tariffs: readonly Tariff[]): PriceList {
  const lines = tariffs.map((tariff): PriceListLine => ({ ...tariff, prices: tariff.prices.map(toPriceJson) }));
  const version = createHash('sha256').update(JSON.stringify(lines)).digest('hex').slice(0, 16);
  return { version, lines };
}
