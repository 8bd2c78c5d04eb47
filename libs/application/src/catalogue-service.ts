import { LRUCache } from 'lru-cache';
import { type Capability, type Catalogue, listRequirements } from '#catalogue';
import { createRootCause } from '#kernel';
import { Clock } from './clock.ts';
import { PriceLists } from './streams.ts';

/** The capabilities of vendors, and whether they are available here. */
export interface ProviderAvailability {
  supports(upstream: string, capability: Capability): boolean;
  /** Why a vendor is not available here; undefined when it is. */
  findUnavailableReason(upstream: string): string | undefined;
}

/** Proofs of payment come for the lists of the last hours: prices seldom change that often. */
const MAX_CACHED_PRICE_LISTS = 8;

/** The catalogue that is in force. */
export class CatalogueService {
  /** That catalogue at the prices of earlier lists. */
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

  /** The part of it that is available here. */
  get current(): Catalogue {
    return this.currentCatalogue;
  }

  /**
   * What is sold now, at the prices of the list of that version: what has no price there is not in it.
   * @returns undefined when no such list was published
   * @throws StoreUnavailableError
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
   * What is sold to a payer: at today's prices, or at those that he was promised.
   * @throws StoreUnavailableError
   */
  async loadForPayer({ priceList }: { readonly priceList?: string | undefined }): Promise<Catalogue> {
    if (priceList === undefined) return this.current;
    const promised = await this.findAtPriceList(priceList);
    if (promised) return promised;
    throw new Error(`the price list ${priceList} was never published`);
  }

  /** States the prices as a fact, once for each version, before anything is charged by them. */
  async replace(next: Catalogue): Promise<void> {
    const { version, lines } = next.priceList;
    const data = { version, lines, at: this.clock.now() };
    await this.priceLists.run(version, { type: 'PublishPriceList', data }, createRootCause('catalogue', version));
    this.currentCatalogue = next.withAvailableEndpoints((upstream) => this.providers.findUnavailableReason(upstream));
    this.cachedCatalogues.clear();
  }
}

/**
 * A catalogue whose vendors have the capabilities that it needs. One that has just been added to the files is known from the next
 * start on.
 * @throws Error that names the model and the vendor
 */
export function assertProvidersSupport(catalogue: Catalogue, providers: ProviderAvailability): Catalogue {
  const unmet = listRequirements(catalogue).find(
    ({ upstream, capability }) => !providers.supports(upstream, capability),
  );
  if (unmet === undefined) return catalogue;
  const { owner, upstream, capability } = unmet;
  throw new Error(`cannot be used: ${owner} wants ${capability} of "${upstream}", which does not offer that`);
}
