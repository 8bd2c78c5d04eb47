import { LRUCache } from 'lru-cache';
import {
  type Capability,
  type Catalogue,
  type EndpointAvailability,
  formatDay,
  listRequirements,
  toDayNumber,
} from '#catalogue';
import { createRootCause } from '#kernel';
import type { Clock } from './clock.ts';
import type { PriceLists } from './streams.ts';

/** The capabilities of providers, and whether the providers are available in this installation. */
export interface ProviderAvailability extends EndpointAvailability {
  supports(upstream: string, capability: Capability): boolean;
}

interface CatalogueDependencies {
  readonly providers: ProviderAvailability;
  readonly priceLists: PriceLists;
  readonly clock: Clock;
  /** The time whose UTC day decides which models have retired: that of `clock`, or a fixed one. */
  readonly calendar: Pick<Clock, 'nowMs'>;
}

/** Enough for all proofs of payment: they refer to price lists of about the last day, and prices rarely change. */
const MAX_CACHED_PRICE_LISTS = 8;

/**
 * Provides the catalogue that is in force: that of the current UTC day, at current prices and at those of earlier price
 * lists.
 */
export class CatalogueService {
  /** The current catalogue at the prices of earlier price lists, by version. */
  private readonly cachedCatalogues = new LRUCache<string, Catalogue>({ max: MAX_CACHED_PRICE_LISTS });

  private currentCatalogue: Catalogue;
  private currentDayNumber: number;

  private constructor(
    /** The catalogue of its files, for any day and with any providers. */
    private source: Catalogue,
    private readonly dependencies: CatalogueDependencies,
  ) {
    this.currentDayNumber = toDayNumber(dependencies.calendar.nowMs());
    this.currentCatalogue = this.adapt();
  }

  static async create(first: Catalogue, dependencies: CatalogueDependencies): Promise<CatalogueService> {
    const catalogues = new CatalogueService(first, dependencies);
    await catalogues.replace(first);
    return catalogues;
  }

  /**
   * The part of the catalogue that is available here today. Every request reads it, so on all but the first read of a day
   * only the numbers of the days are compared.
   */
  get current(): Catalogue {
    const dayNumber = toDayNumber(this.dependencies.calendar.nowMs());
    if (dayNumber !== this.currentDayNumber) {
      this.currentDayNumber = dayNumber;
      this.apply(this.source);
    }
    return this.currentCatalogue;
  }

  /**
   * Returns the current catalogue at the prices of a price list, without entries that have no price there.
   * @returns undefined if the price list was never published
   */
  async findAtPriceList(version: string): Promise<Catalogue | undefined> {
    const { current } = this;
    const cached = current.priceList.version === version ? current : this.cachedCatalogues.get(version);
    if (cached) return cached;
    const published = await this.dependencies.priceLists.read(version);
    if (published === null) return undefined;
    const priced = current.withPriceList({ version, lines: published.lines });
    if (current === this.currentCatalogue) this.cachedCatalogues.set(version, priced);
    return priced;
  }

  /**
   * Returns the catalogue for a payer: at current prices, or at those of the payer's price list.
   * @throws StoreUnavailableError if the price list cannot be loaded; Error if it was never published
   */
  async loadForPayer({ priceList }: { readonly priceList?: string | undefined }): Promise<Catalogue> {
    if (priceList === undefined) return this.current;
    const promised = await this.findAtPriceList(priceList);
    if (promised) return promised;
    throw new Error(`the price list ${priceList} was never published`);
  }

  /**
   * Puts a catalogue in force. Its prices are first published as an event, once per version, so that nothing is charged
   * at unpublished prices.
   */
  async replace(next: Catalogue): Promise<void> {
    const { version, lines } = next.priceList;
    const data = { version, lines, at: this.dependencies.clock.now() };
    await this.dependencies.priceLists.run(
      version,
      { type: 'PublishPriceList', data },
      createRootCause('catalogue', version),
    );
    this.apply(next);
  }

  private apply(source: Catalogue): void {
    this.source = source;
    this.currentCatalogue = this.adapt();
    this.cachedCatalogues.clear();
  }

  private adapt(): Catalogue {
    return this.source.onDay(formatDay(this.currentDayNumber)).withAvailableEndpoints(this.dependencies.providers);
  }
}

/**
 * Returns the catalogue if its providers have all capabilities that it requires. A process knows only the providers
 * that the files had at its start.
 * @throws Error that names the owner of the requirement, the capability and the provider
 */
export function assertProvidersSupport(catalogue: Catalogue, providers: ProviderAvailability): Catalogue {
  const unmet = listRequirements(catalogue).find(
    ({ upstream, capability }) => !providers.supports(upstream, capability),
  );
  if (unmet === undefined) return catalogue;
  const { owner, upstream, capability } = unmet;
  throw new Error(
    `cannot be used: ${owner} requires ${capability} of provider "${upstream}", which does not support it`,
  );
}
