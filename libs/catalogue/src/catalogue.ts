/** The catalogue: models, data lookups and services with their endpoints and prices. */
import { createHash } from 'node:crypto';
import { type PriceListLine, parsePriceJson, type Tariff, toPriceJson } from '#domain';
import {
  type AnyModel,
  type DataEndpoint,
  type Endpoint,
  type ParameterLists,
  toDataEndpoint,
  toMediaModel,
  toModel,
} from './catalogue-entries.ts';
import type { DataEndpointFile } from './data-endpoint-file.ts';
import { type FeeFile, type HeldSearches, isMediaModel } from './data-files.ts';
import type { AnyModelFile } from './media-file.ts';
import type { RuleSets } from './model-rules.ts';
import { linkProviders, type ProviderFile } from './provider-file.ts';
import { findReferenceMistakes } from './references.ts';
import { findRetirements, hasRetired, isRetirementNear, type Retirement } from './retirement.ts';
import { toLineKey, toServiceTariff } from './tariffs.ts';
import { DataFileError } from './validation.ts';
import type { VoiceFile } from './voices-file.ts';

/** Which providers can be called in an installation. */
export interface EndpointAvailability {
  /** Returns the setting that would make a provider available; undefined if it is available. */
  findMissingSetting(upstream: string): string | undefined;
  /** Whether the sandbox simulates a provider. */
  isSimulated(upstream: string): boolean;
  /** Whether a provider has agreed to retain no data of the operator's account, or is simulated. */
  hasZdrAgreement(upstream: string): boolean;
}

export interface PriceList {
  readonly version: string;
  readonly lines: readonly PriceListLine[];
}

/** Parsed data files other than the models. */
export interface CatalogueFiles {
  readonly lists?: ParameterLists;
  readonly modelRules?: RuleSets;
  readonly fees?: readonly FeeFile[];
  /** Undefined if the endpoints already have `onDisconnect` and `maxChoices`, and their providers exist. */
  readonly providers?: readonly ProviderFile[];
  readonly voices?: readonly VoiceFile[];
  readonly dataEndpoints?: readonly DataEndpointFile[];
}

interface CatalogueContents {
  readonly models: readonly AnyModel[];
  /** Models that have retired by `day`, with the endpoints that they had. */
  readonly retiredModels: readonly AnyModel[];
  /** The UTC day for which retirements were evaluated; undefined for a catalogue as in its files. */
  readonly day?: string;
  readonly dataEndpoints: readonly DataEndpoint[];
  readonly services: readonly Tariff[];
  /** The fees of services, by their names. */
  readonly fees: ReadonlyMap<string, FeeFile>;
  readonly priceList: PriceList;
  /** By the names of models, lookups and services that are not available. */
  readonly missingSettings: MissingSettings;
}

/** Settings, any of which would make an entry of the catalogue available, by its name. */
type MissingSettings = ReadonlyMap<string, readonly string[]>;

export class Catalogue {
  private readonly modelsByName: ReadonlyMap<string, AnyModel>;
  private readonly dataEndpointsByAction: ReadonlyMap<string, DataEndpoint>;
  private readonly retirements: ReadonlyMap<string, Retirement>;

  private constructor(private readonly parts: CatalogueContents) {
    const { models, retiredModels, dataEndpoints, day } = parts;
    this.modelsByName = new Map(
      [...models, ...retiredModels].flatMap((model) =>
        [model.id, ...(model.aliases ?? [])].map((name) => [name, model]),
      ),
    );
    this.retirements = day === undefined ? new Map() : findRetirements(models, retiredModels, day);
    this.dataEndpointsByAction = new Map(
      dataEndpoints.map((dataEndpoint) => [dataEndpoint.endpoint.model, dataEndpoint]),
    );
  }

  /**
   * Builds the catalogue from validated files.
   * @throws DataFileError if names are not unique or do not exist; its paths start with the index of the model
   */
  static fromFiles(
    modelFiles: readonly AnyModelFile[],
    {
      lists = {},
      modelRules = {},
      fees = [],
      providers,
      voices = [],
      dataEndpoints: dataEndpointFiles = [],
    }: CatalogueFiles = {},
  ): Catalogue {
    const mistakes = findReferenceMistakes(modelFiles, { lists, modelRules, fees, providers });
    if (mistakes.length > 0) throw new DataFileError(mistakes);
    const references = { lists, modelRules };
    const models = (providers ? linkProviders(modelFiles, providers) : modelFiles).map((file) =>
      isMediaModel(file) ? toMediaModel(file, references, voices) : toModel(file, references),
    );
    const services = fees.map(toServiceTariff);
    const dataEndpoints = dataEndpointFiles.map(toDataEndpoint);
    const offers: readonly Endpoint[] = models.flatMap(({ endpoints }) => endpoints);
    const offerTariffs = [...offers, ...dataEndpoints.map(({ endpoint }) => endpoint)].map(({ tariff }) => tariff);
    return new Catalogue({
      models,
      retiredModels: [],
      dataEndpoints,
      services,
      fees: new Map(fees.map((fee) => [fee.name, fee])),
      priceList: toPriceList([...offerTariffs, ...services]),
      missingSettings: new Map(),
    });
  }

  /** All models of the files or, in the catalogue of a day, those that have not retired. */
  get models(): readonly AnyModel[] {
    return this.parts.models;
  }

  get retiredModels(): readonly AnyModel[] {
    return this.parts.retiredModels;
  }

  /** The UTC day for which `onDay` created the catalogue. */
  get day(): string | undefined {
    return this.parts.day;
  }

  /** Data lookups in the order of their file. */
  get dataEndpoints(): readonly DataEndpoint[] {
    return this.parts.dataEndpoints;
  }

  get priceList(): PriceList {
    return this.parts.priceList;
  }

  /**
   * Returns the catalogue of a UTC day, in which models and endpoints that have retired by then are not sold. The price
   * list is not changed. Call it before `withAvailableEndpoints`: a model that only an unavailable provider still
   * serves then requires the setting of this provider.
   */
  onDay(day: string): Catalogue {
    const { parts } = this;
    const hasEnded = ({ retires }: AnyModel) => hasRetired(retires, day);
    const models = parts.models
      .filter((model) => !hasEnded(model))
      .map((model) =>
        mapModelEndpoints(model, (endpoint) =>
          hasRetired(endpoint.retires, day) ? `was retired on ${endpoint.retires}` : endpoint,
        ),
      );
    const retiredModels = [...parts.retiredModels, ...parts.models.filter(hasEnded)];
    return new Catalogue({ ...parts, day, models, retiredModels });
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
    const isOffered = (model: AnyModel) =>
      isMediaModel(model) ||
      !model.simulated ||
      model.endpoints.some(({ upstream }) => providers.isSimulated(upstream));
    const models = parts.models.filter(isOffered);
    const retiredModels = parts.retiredModels.filter(isOffered);
    const fees = new Map(
      [...parts.fees].map(([name, fee]) => [name, applyZdrAgreement(fee, parts.services, providers)]),
    );
    const missingSettings = this.collectMissingSettings(providers);
    return new Catalogue({ ...parts, models, retiredModels, fees, missingSettings });
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

  /** Finds a model by its id or an alias, even one that has retired. */
  findModel(name: string): AnyModel | undefined {
    return this.modelsByName.get(name);
  }

  /** Returns the end of a model if it has come, or comes within 30 days of the catalogue's day. */
  findRetirement({ id }: Pick<AnyModel, 'id'>): Retirement | undefined {
    return this.retirements.get(id);
  }

  /** Returns the end of an endpoint of a model if it has come, or comes within 30 days of the catalogue's day. */
  findEndpointRetirementDay(model: Pick<AnyModel, 'id'>, { retires }: Pick<Endpoint, 'retires'>): string | undefined {
    const { day } = this.parts;
    const modelDay = this.findRetirement(model)?.day;
    if (retires === undefined || day === undefined || !isRetirementNear(retires, day)) return modelDay;
    return modelDay !== undefined && modelDay < retires ? modelDay : retires;
  }

  /** Whether a service, such as web search, retains no request data. */
  hasZeroDataRetention(service: string): boolean {
    return this.parts.fees.get(service)?.zdr === true;
  }

  /** Whether a search service supports the lists of domains of a search. */
  canFilterDomains(service: string, { includeDomains, excludeDomains }: DomainLists): boolean {
    const { includesDomains, excludesDomains } = this.parts.fees.get(service) ?? {};
    const canInclude = includeDomains.length === 0 || includesDomains !== false;
    return canInclude && (excludeDomains.length === 0 || excludesDomains !== false);
  }

  /** Returns how many searches a hold pays for; undefined if requests limit the searches of this service. */
  findHeldSearches(service: string): HeldSearches | undefined {
    return this.parts.fees.get(service)?.heldSearches;
  }

  /** Returns the tariff of a service, such as web search; undefined if it is not sold. */
  findService(name: string): Tariff | undefined {
    return this.parts.services.find(({ of }) => of === name);
  }

  private collectMissingSettings(providers: EndpointAvailability): MissingSettings {
    const upstreams = [
      ...this.models.map(({ id, endpoints }) => [id, endpoints.map(({ upstream }) => upstream)] as const),
      ...this.dataEndpoints.map(({ endpoint }) => [endpoint.model, [endpoint.upstream]] as const),
      ...this.parts.services.map(({ of, creditor }) => [of, [creditor]] as const),
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
    const mapModel = (model: AnyModel) => mapModelEndpoints(model, mapEndpoint);
    const [models, retiredModels] = [this.models.map(mapModel), this.retiredModels.map(mapModel)];
    const dataEndpoints = this.dataEndpoints.flatMap((dataEndpoint) => {
      const endpoint = mapEndpoint(dataEndpoint.endpoint);
      return typeof endpoint === 'string' ? [] : [{ ...dataEndpoint, endpoint }];
    });
    return new Catalogue({ ...this.parts, models, retiredModels, dataEndpoints });
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

/** Derives the version from the lines, so that equal prices have the same version in every process. */
function toPriceList(tariffs: readonly Tariff[]): PriceList {
  const lines = tariffs.map((tariff): PriceListLine => ({ ...tariff, prices: tariff.prices.map(toPriceJson) }));
  const version = createHash('sha256').update(JSON.stringify(lines)).digest('hex').slice(0, 16);
  return { version, lines };
}

/** The domains that a web search is restricted to, and those that it excludes. */
interface DomainLists {
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
}

/** Marks a fee with `zdr` if its provider retains no data by an agreement of this installation. */
function applyZdrAgreement(fee: FeeFile, services: readonly Tariff[], providers: EndpointAvailability): FeeFile {
  const { provider } = services.find(({ of }) => of === fee.name) ?? {};
  const hasAgreement = provider !== undefined && providers.hasZdrAgreement(provider);
  return fee.zdrByAgreement && hasAgreement ? { ...fee, zdr: true } : fee;
}
