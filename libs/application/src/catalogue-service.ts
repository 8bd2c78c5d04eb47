import { LRUCache } from 'lru-cache';
import { type Capability, type Catalogue, type EndpointAvailability, listRequirements } from '#catalogue';
import { createRootCause } from '#kernel';
import { Clock } from './clock.ts';
import { PriceLists } from './streams.ts';

/** The capabilities of providers, and whether the providers are available in this installation. */
export interface ProviderAvailability extends EndpointAvailability {
  supports(upstream: string, capability: Capability): boolean;
}

/** Enough for all proofs of payment: they refer to price lists of about the last day, and prices rarely change. */
const MAX_CACHED_PRICE_LISTS = 8;

/** Provides the catalogue that is in force, at current prices and at those of earlier price lists. */
export class CatalogueService {
  /** The current catalogue at the prices of earlier price lists, by version. */
  private readonly cachedCatalogues = new LRUCache<string, Catalogue>({ max: MAX_CACHED_PRICE_LISTS });

  private constructor(
    private currentCatalogue: Catalogue,
    private readonly providers: ProviderAvailability,
    private readonly priceLists: PriceLists,
    private readonly clock: Clock,
  ) {}

  static async create(
    first: Catalogue,
    providers: ProviderAvailability,
    priceLists: PriceLists,
    clock: Clock,
  ): Promise<CatalogueService> {
    const catalogues = new CatalogueService(first, providers, priceLists, clock);
    await catalogues.replace(first);
    return catalogues;
  }

  /** The part of the catalogue that is available here. */
  get current(): Catalogue {
    return this.currentCatalogue;
  }

  /**
   * Returns the current catalogue at the prices of a price list, without entries that have no price there.
   * @returns undefined if the price list was never published
   */
  async findAtPriceList(version: string): Promise<Catalogue | undefined> {
    const current = this.currentCatalogue;
    const cached = current.priceList.version === version ? current : this.cachedCatalogues.get(version);
    if (cached) return cached;
    const published = await this.priceLists.read(version);
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
    const data = { version, lines, at: this.clock.now() };
    await this.priceLists.run(version, { type: 'PublishPriceList', data }, createRootCause('catalogue', version));
    this.currentCatalogue = next.withAvailableEndpoints(this.providers);
    this.cachedCatalogues.clear();
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
