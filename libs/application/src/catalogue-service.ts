import { LRUCache } from 'lru-cache';
import { type Capability, type Catalogue, listRequirements } from '#catalogue';
import { createRootCause } from '#kernel';
import { Clock } from './clock.ts';
import { PriceLists } from './streams.ts';

/** The capabilities of vendors, and whether they are available here. */
export interface ProviderAvailability {
  can(upstream: string, capability: Capability): boolean;
  /** Why a vendor is not available here; undefined when it is. */
  objection(upstream: string): string | undefined;
}

/** Proofs of payment come for the lists of the last hours: prices seldom change that often. */
const REMEMBERED_LISTS = 8;

/** The catalogue that is in force. */
export class CatalogueService {
  /** That catalogue at the prices of earlier lists. */
  private readonly earlier = new LRUCache<string, Catalogue>({ max: REMEMBERED_LISTS });

  private constructor(
    private inForce: Catalogue,
    private readonly vendors: ProviderAvailability,
    private readonly priceLists: PriceLists,
    private readonly clock: Clock,
  ) {}

  static async with(
    first: Catalogue,
    vendors: ProviderAvailability,
    priceLists: PriceLists,
    clock: Clock,
  ): Promise<CatalogueService> {
    const catalogues = new CatalogueService(first, vendors, priceLists, clock);
    await catalogues.replace(first);
    return catalogues;
  }

  /** The part of it that is available here. */
  get current(): Catalogue {
    return this.inForce;
  }

  /**
   * What is sold now, at the prices of the list of that version: what has no price there is not in it.
   * @returns undefined when no such list was published
   * @throws StoreUnavailableError
   */
  async asOf(version: string): Promise<Catalogue | undefined> {
    const current = this.inForce;
    const known = current.priceList.version === version ? current : this.earlier.get(version);
    if (known) return known;
    const published = await this.priceLists.read(version);
    if (published === null) return undefined;
    const priced = current.withPriceList({ version, lines: published.lines });
    if (current === this.inForce) this.earlier.set(version, priced);
    return priced;
  }

  /**
   * What is sold to a payer: at today's prices, or at those that he was promised.
   * @throws StoreUnavailableError
   */
  async servedTo({ priceList }: { readonly priceList?: string | undefined }): Promise<Catalogue> {
    if (priceList === undefined) return this.current;
    const promised = await this.asOf(priceList);
    if (promised) return promised;
    throw new Error(`the price list ${priceList} was never published`);
  }

  /** States the prices as a fact, once for each version, before anything is charged by them. */
  async replace(next: Catalogue): Promise<void> {
    const { version, lines } = next.priceList;
    const data = { version, lines, at: this.clock.now() };
    await this.priceLists.run(version, { type: 'PublishPriceList', data }, createRootCause('catalogue', version));
    this.inForce = next.withAvailableEndpoints((upstream) => this.vendors.objection(upstream));
    this.earlier.clear();
  }
}

/**
 * A catalogue whose vendors have the capabilities that it needs. One that has just been added to the files is known from the next
 * start on.
 * @throws Error that names the model and the vendor
 */
export function assertProvidersSupport(catalogue: Catalogue, vendors: ProviderAvailability): Catalogue {
  const unmet = listRequirements(catalogue).find(({ upstream, capability }) => !vendors.can(upstream, capability));
  if (unmet === undefined) return catalogue;
  const { owner, upstream, capability } = unmet;
  throw new Error(`cannot be used: ${owner} wants ${capability} of "${upstream}", which does not offer that`);
}
