import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Catalogue } from '#catalogue';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS } from '#kernel';
import { CatalogueService } from './catalogue-service.ts';
import { Clock } from './clock.ts';
import { createStreams, type PriceLists } from './streams.ts';

class Noon extends Clock {
  nowMs(): number {
    return Date.UTC(2026, 0, 1, 12);
  }
}

/** Returns a catalogue with one data lookup at this base price. */
function selling(baseUsd: string, upstream = 'here'): Catalogue {
  const charged = { empty: true, notFound: false, failed: false };
  const words = {
    provider: 'web',
    action: 'search',
    method: 'POST',
    name: 'Search',
    description: 'A search.',
  } as const;
  const lookup = { ...words, upstream, path: '/search', baseUsd, margin: '1.15', charged, example: {} };
  return Catalogue.fromFiles([], { dataEndpoints: [lookup] });
}

const vendors = {
  supports: () => true,
  findMissingSetting: (upstream: string) => (upstream === 'here' ? undefined : 'AWAY_API_KEY'),
  isSimulated: () => true,
};
const costOf = (catalogue: Catalogue | undefined) => {
  const [price] = catalogue?.findDataEndpoint('web', 'search')?.endpoint.tariff.prices ?? [];
  return price?.cost;
};

/**
 * Returns the service of a process that started with the first catalogue and replaced it with the others, and the
 * versions of the price lists that were read.
 */
async function replaced(first: Catalogue, ...others: readonly Catalogue[]) {
  const runtime = { generateId: randomUUID, sleep: async () => {}, reportError: () => {} };
  const store = new MemoryEventStore();
  const { priceLists } = createStreams(store, NO_SNAPSHOTS, runtime);
  const reads: string[] = [];
  const counted: PriceLists = {
    run: (...command) => priceLists.run(...command),
    read: (version) => {
      reads.push(version);
      return priceLists.read(version);
    },
  };
  const catalogues = await CatalogueService.create(first, vendors, counted, new Noon());
  for (const next of others) await catalogues.replace(next);
  return { catalogues, reads };
}

describe('the catalogue at an earlier price list', () => {
  const [cheap, dear] = [selling('0.01'), selling('0.02')];

  test('has the prices that were published then, which are read once', async () => {
    const { catalogues, reads } = await replaced(cheap, dear);
    const earlier = await catalogues.findAtPriceList(cheap.priceList.version);
    expect([costOf(catalogues.current), costOf(earlier)]).toEqual([20_000_000_000n, 10_000_000_000n]);
    expect(earlier?.priceList.version).toBe(cheap.priceList.version);
    expect(await catalogues.findAtPriceList(cheap.priceList.version)).toBe(earlier);
    expect(reads).toEqual([cheap.priceList.version]);
  });

  test('is the current catalogue if the list is in force', async () => {
    const { catalogues, reads } = await replaced(cheap);
    expect(await catalogues.findAtPriceList(cheap.priceList.version)).toBe(catalogues.current);
    expect(reads).toEqual([]);
  });

  test('is undefined if the list was never published', async () => {
    const { catalogues } = await replaced(cheap);
    expect(await catalogues.findAtPriceList(dear.priceList.version)).toBeUndefined();
    expect(await catalogues.findAtPriceList('constructor')).toBeUndefined();
  });

  test('does not contain what is no longer sold', async () => {
    const { catalogues } = await replaced(cheap, dear);
    await catalogues.findAtPriceList(cheap.priceList.version);
    await catalogues.replace(selling('0.03', 'elsewhere'));
    const earlier = await catalogues.findAtPriceList(cheap.priceList.version);
    expect(earlier?.findDataEndpoint('web', 'search')).toBeUndefined();
  });
});
