import { type Capability, type Catalogue, demandsOf } from '#catalogue';
import { startedBy } from '#kernel';
import { Clock } from './clock.ts';
import { PriceLists } from './streams.ts';

/** The capabilities of vendors, and whether they are available here. */
export interface Vendors {
  can(upstream: string, capability: Capability): boolean;
  /** Why a vendor is not available here; undefined when it is. */
  objection(upstream: string): string | undefined;
}

/** The catalogue that is in force. */
export class Catalogues {
  private constructor(
    private inForce: Catalogue,
    private readonly vendors: Vendors,
    private readonly priceLists: PriceLists,
    private readonly clock: Clock,
  ) {}

  static async with(first: Catalogue, vendors: Vendors, priceLists: PriceLists, clock: Clock): Promise<Catalogues> {
    const catalogues = new Catalogues(first, vendors, priceLists, clock);
    await catalogues.replace(first);
    return catalogues;
  }

  /** The part of it that is available here. */
  get current(): Catalogue {
    return this.inForce;
  }

  /** States the prices as a fact, once for each version, before anything is charged by them. */
  async replace(next: Catalogue): Promise<void> {
    const { version, lines } = next.priceList;
    const data = { version, lines, at: this.clock.now() };
    await this.priceLists.run(version, { type: 'PublishPriceList', data }, startedBy('catalogue', version));
    this.inForce = next.within((upstream) => this.vendors.objection(upstream));
  }
}

/**
 * A catalogue whose vendors have the capabilities that it needs. One that has just been added to the files is known from the next
 * start on.
 * @throws Error that names the model and the vendor
 */
export function served(catalogue: Catalogue, vendors: Vendors): Catalogue {
  const unmet = demandsOf(catalogue).find(({ upstream, capability }) => !vendors.can(upstream, capability));
  if (unmet === undefined) return catalogue;
  const { owner, upstream, capability } = unmet;
  throw new Error(`cannot be used: ${owner} wants ${capability} of "${upstream}", which does not offer that`);
}
