import type { Catalogue } from '#catalogue';
import { Clock } from './clock.ts';
import { PriceLists } from './streams.ts';

/** The catalogue that is in force. */
export class Catalogues {
  private constructor(
    private inForce: Catalogue,
    private readonly priceLists: PriceLists,
    private readonly clock: Clock,
  ) {}

  static async with(first: Catalogue, priceLists: PriceLists, clock: Clock): Promise<Catalogues> {
    const catalogues = new Catalogues(first, priceLists, clock);
    await catalogues.replace(first);
    return catalogues;
  }

  get current(): Catalogue {
    return this.inForce;
  }

  /** States the prices as a fact, once for each version, before anything is charged by them. */
  async replace(next: Catalogue): Promise<void> {
    const { version, rates, units, fees } = next.priceList;
    await this.priceLists.run(version, {
      type: 'PublishPriceList',
      data: { version, rates, units, fees, at: this.clock.now() },
    });
    this.inForce = next;
  }
}
