import { describe, expect, test } from '@jest/globals';
import { Catalogue, parseModels } from '#catalogue';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS } from '#kernel';
import { createTestEndpoint, createTestModel, createTestRuntime } from '#testing';
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
  hasZdrAgreement: () => true,
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
  const runtime = createTestRuntime({ sleep: async () => {} });
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
  const clock = new Noon();
  const dependencies = { providers: vendors, priceLists: counted, clock, calendar: clock };
  const catalogues = await CatalogueService.create(first, dependencies);
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

describe('the catalogue of a day', () => {
  const LAST_DAY = Date.UTC(2026, 11, 10, 23, 59, 59, 999);
  const model = createTestModel('test/old', [createTestEndpoint('Here', 'here')], { retires: '2026-12-11' });
  const catalogue = Catalogue.fromFiles(parseModels([model]), { lists: { 'openai-sampling': [] } });
  const listIds = ({ models }: Catalogue) => models.map(({ id }) => id);

  async function openOnLastDay() {
    const runtime = createTestRuntime({ sleep: async () => {} });
    const { priceLists } = createStreams(new MemoryEventStore(), NO_SNAPSHOTS, runtime);
    const calendar = { now: LAST_DAY, nowMs: () => calendar.now };
    const dependencies = { providers: vendors, priceLists, clock: new Noon(), calendar };
    return { calendar, catalogues: await CatalogueService.create(catalogue, dependencies) };
  }

  test('changes at midnight UTC, without a reload of the files, and is the same object until then', async () => {
    const { calendar, catalogues } = await openOnLastDay();
    const before = catalogues.current;
    expect([listIds(before), catalogues.current === before]).toEqual([['test/old'], true]);

    calendar.now += 1;

    const after = catalogues.current;
    expect([listIds(after), after.day, catalogues.current === after]).toEqual([[], '2026-12-11', true]);
    expect(after.findModel('test/old')?.id).toBe('test/old');
  });

  test('has the retired models of today at an earlier price list', async () => {
    const { calendar, catalogues } = await openOnLastDay();
    const { version } = catalogue.priceList;
    await catalogues.replace(catalogue.withPriceList({ version: 'later', lines: catalogue.priceList.lines }));
    expect(listIds((await catalogues.findAtPriceList(version)) as Catalogue)).toEqual(['test/old']);

    calendar.now += 1;

    const promised = await catalogues.loadForPayer({ priceList: version });
    expect([listIds(promised), promised.findRetirement({ id: 'test/old' })?.isOver]).toEqual([[], true]);
  });

  test('follows a clock that is set back', async () => {
    const { calendar, catalogues } = await openOnLastDay();
    calendar.now += 1;
    expect(listIds(catalogues.current)).toEqual([]);

    calendar.now -= 1;

    expect(listIds(catalogues.current)).toEqual(['test/old']);
  });
});
