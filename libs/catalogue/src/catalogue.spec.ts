import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isMediaModel, readCatalogue, type TokenPricedModel } from '#catalogue';
import { calculateCostAndPrice, calculateMaxPrice, calculatePrice, type PriceListLine } from '#domain';
import { formatUsd } from '#kernel';

let directory: string;
let file: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-catalogue-'));
  file = path.join(directory, 'models.json');
  await writeFile(path.join(directory, 'parameters.json'), JSON.stringify({ few: ['max_tokens', 'stop'] }));
  await writeFile(path.join(directory, 'fees.json'), '[]');
});
afterAll(() => rm(directory, { recursive: true }));

const good = () => ({
  id: 'vendor/model',
  type: 'chat',
  name: 'Model',
  provider: 'Vendor',
  description: 'A model.',
  released: '2026-02-28',
  popular: false,
  privacy: 'anon',
  inputs: ['text'],
  context: 1000,
  maxOutput: 100,
  endpoints: [
    {
      provider: 'Open AI',
      upstream: 'openai',
      model: 'model',
      usdPerMillionTokens: { input: '1.5', cacheRead: '0.15', output: '6' },
      margin: '1.055',
      parameters: ['max_tokens'],
    },
  ],
});

/** Reads a file with this in it. */
async function reading(content: unknown) {
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return () => readCatalogue(directory);
}

/** A good model with one field changed, or left out where it is undefined: `endpoint.margin`. */
function changed(field: string, value: unknown): object {
  const model = good();
  const names = field.split('.');
  const last = names.pop() as string;
  let at: Record<string, unknown> = model;
  for (const name of names) at = at[name] as Record<string, unknown>;
  at[last] = value;
  return model;
}

describe('a data file', () => {
  test('has prices in pico-USD, with the margin, and names who invoices', async () => {
    const { priceList, models } = (await reading([good()]))();
    expect(priceList.lines).toEqual([
      {
        of: 'vendor/model',
        provider: 'open-ai',
        creditor: 'openai',
        prices: [
          { unit: 'input', per: 1_000_000, cost: '1500000000000', price: '1582500000000' },
          { unit: 'cacheRead', per: 1_000_000, cost: '150000000000', price: '158250000000' },
          { unit: 'output', per: 1_000_000, cost: '6000000000000', price: '6330000000000' },
          { unit: 'request', per: 1, cost: '0', price: '0' },
        ],
      },
    ]);
    expect(models[0]).toMatchObject({
      id: 'vendor/model',
      created: 1_772_236_800,
      endpoints: [{ upstream: 'openai', slug: 'open-ai' }],
    });
  });

  test('has prices for ten thousand times as many where its margin leaves no whole pico-USD', async () => {
    const { priceList } = (await reading([changed('endpoints.0.usdPerRequest', '0.000000000001')]))();
    const request = priceList.lines[0]?.prices.find(({ unit }) => unit === 'request');
    expect(request).toEqual({ unit: 'request', per: 10_000, cost: '10000', price: '10550' });
  });

  test('has a version that depends on its prices and on nothing else', async () => {
    const version = async (...models: readonly object[]) => (await reading(models))().priceList.version;
    const known = await version(good());
    expect(known).toBe('9d73816134a5942b');
    expect(await version(changed('description', 'Other words.'))).toBe(known);
    expect(await version(changed('context', 2000))).toBe(known);
    expect(await version(changed('endpoints.0.usdPerMillionTokens.input', '1.50'))).toBe(known);
    expect(await version(changed('endpoints.0.usdPerMillionTokens.input', '1.51'))).not.toBe(known);
    expect(await version(changed('endpoints.0.margin', '1.056'))).not.toBe(known);
    expect(await version(good(), { ...good(), id: 'vendor/other' })).not.toBe(known);
  });

  test.each([
    ['a price of nothing', 'endpoints.0.usdPerMillionTokens.input', '0'],
    ['a price of a pico-USD', 'endpoints.0.usdPerRequest', '0.000000000001'],
    ['a price in exponent form', 'endpoints.0.usdPerRequest', '1e-7'],
    ['a margin below the cost', 'endpoints.0.margin', '0.5'],
  ])('may have %s', async (_, field, value) => {
    expect(await reading([changed(field, value)])).not.toThrow();
  });
});

test('a list of parameters has a name that endpoints refer to', async () => {
  const { models } = (await reading([changed('endpoints.0.parameters', 'few')]))();
  expect(models[0]?.endpoints[0]?.parameters).toEqual(['max_tokens', 'stop']);
});

describe('a mistake in a data file stops the start and is named with its file', () => {
  test.each([
    ['no JSON', 'models', /Unexpected token/],
    ['a comma too many', '[\n{"id": "a",}\n]', /line 2 column 12/],
    ['nothing', '', /end of JSON/],
    ['no list', { models: [] }, /it must be a list of models/],
    ['something else than a model', [good(), 5], /model 2 must be an object/],
    ['a model without an id', [changed('id', undefined)], /id of model 1 must be a text/],
  ])('that is %s', async (_, content, message) => {
    const read = await reading(content);
    expect(read).toThrow(message);
    expect(read).toThrow(file);
  });

  test('that is no directory', () => {
    expect(() => readCatalogue(path.join(directory, 'nothing'))).toThrow(/nothing cannot be used: ENOENT/);
  });

  test.each([
    ['a model twice', [good(), changed('name', 'Another')], 'model "vendor/model" is there twice'],
    ['an alias that is a model', [good(), { ...good(), id: 'a', aliases: ['vendor/model'] }], 'there twice'],
    [
      'a provider twice',
      [changed('endpoints', [...good().endpoints, ...good().endpoints])],
      'provider of model "vendor/model" is open-ai, which is there already',
    ],
    ['a variant that is no model', [changed('variants', { thinking: 'lost' })], 'names "lost", which is not there'],
    ['a fee that is none', [changed('endpoints.0.searchFee', 'any')], 'names the fee "any", which is not there'],
    ['a list that is none', [changed('endpoints.0.parameters', 'many')], 'names the list "many", which is not there'],
  ])('that shows only among others: %s', async (_, content, message) => {
    expect(await reading(content)).toThrow(message);
  });

  const price = 'endpoints.0.usdPerMillionTokens.input';
  test.each<[string, string, unknown]>([
    ['a price below zero', price, '-0.25'],
    ['a price that is a number', price, 0.25],
    ['a price that is none', price, 'free'],
    ['a price with a unit', price, '$0.25'],
    ['a price with a comma', price, '0,25'],
    ['a price finer than a pico-USD', price, '0.0000000000001'],
    ['no price', price, undefined],
    ['no price of output', 'endpoints.0.usdPerMillionTokens.output', undefined],
    ['no prices at all', 'endpoints.0.usdPerMillionTokens', undefined],
    ['a cache price below zero', 'endpoints.0.usdPerMillionTokens.cacheWrite', '-1'],
    ['a price of a request below zero', 'endpoints.0.usdPerRequest', '-0.01'],
    ['a price of a request that is null', 'endpoints.0.usdPerRequest', null],
    ['no margin', 'endpoints.0.margin', undefined],
    ['a margin of nothing', 'endpoints.0.margin', '0'],
    ['a margin below zero', 'endpoints.0.margin', '-1'],
    ['a margin too fine', 'endpoints.0.margin', '1.05555'],
    ['a margin that is a number', 'endpoints.0.margin', 1.055],
    ['no upstream', 'endpoints.0.upstream', ''],
    ['no model of the upstream', 'endpoints.0.model', undefined],
    ['an unknown quantization', 'endpoints.0.quantization', 'int5'],
    ['a share above one', 'endpoints.0.toolReliability', 1.5],
    ['an unknown type', 'type', 'text'],
    ['a parameter that is no text', 'endpoints.0.parameters', ['max_tokens', 5]],
    ['no endpoint', 'endpoints', []],
    ['a context of nothing', 'context', 0],
    ['a context that is text', 'context', '1000'],
    ['a part of a token', 'maxOutput', 1.5],
    ['more output than context', 'maxOutput', 1001],
    ['a day that is not in the calendar', 'released', '2026-02-29'],
    ['a day with a time', 'released', '2026-02-28T00:00:00.000Z'],
    ['an unknown word of privacy', 'privacy', 'secret'],
    ['a popularity that is a word', 'popular', 'yes'],
    ['no inputs', 'inputs', []],
    ['no name', 'name', ' '],
  ])('that is %s', async (_, field, value) => {
    const read = await reading([changed(field, value)]);
    expect(read).toThrow(field.split('.').at(-1));
    expect(read).toThrow('model "vendor/model"');
    expect(read).toThrow(file);
  });

  test.each([
    ['usdPerRequst', 'endpoints.0.usdPerRequst'],
    ['cacheread', 'endpoints.0.usdPerMillionTokens.cacheread'],
    ['margin', 'margin'],
  ])('that is an unknown field "%s"', async (name, field) => {
    expect(await reading([changed(field, '1')])).toThrow(`has an unknown field "${name}"`);
  });
});

describe('the catalogue that ships', () => {
  const catalogue = readCatalogue();

  test('has these prices: USD per million tokens, and per request', () => {
    const units = ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning'] as const;
    const shown = ['openai/gpt-5-mini', 'openai/gpt-5.4-mini', 'openai/gpt-4o-mini', 'countinghouse/flat'];
    const prices = shown.flatMap((id) =>
      (catalogue.findModel(id)?.endpoints ?? []).map(({ slug, tariff: { creditor, prices } }) => {
        const usages = [...units.map((unit) => ({ [unit]: 1_000_000 })), { request: 1 }];
        return [id, slug, creditor, ...usages.map((usage) => formatUsd(calculateCostAndPrice(usage, prices).cost))];
      }),
    );
    expect(prices).toEqual([
      // model, provider, creditor, input, cacheRead, cacheWrite, output, reasoning, request
      ['openai/gpt-5-mini', 'openai', 'openai', '0.25', '0.025', '0.25', '2', '2', '0'],
      ['openai/gpt-5.4-mini', 'openai', 'openai', '0.75', '0.075', '0.75', '4.5', '4.5', '0'],
      ['openai/gpt-4o-mini', 'openai', 'openai', '0.15', '0.075', '0.15', '0.6', '0.6', '0'],
      ['countinghouse/flat', 'openai', 'openai', '0', '0', '0', '0', '0', '0.01'],
    ]);
  });

  test('owes the router for what is had through one', () => {
    const [endpoint] = catalogue.findModel('google/gemini-2.5-pro')?.endpoints ?? [];
    expect(endpoint?.tariff).toMatchObject({
      of: 'google/gemini-2.5-pro',
      provider: 'google-vertex',
      creditor: 'openrouter',
    });
  });

  test('gives nothing away: the least use of a model costs something, and is not sold below its cost', () => {
    const isNamedFree = ({ id }: { readonly id: string }) => id.endsWith(':free');
    const free = catalogue.models.filter(isNamedFree);
    expect(free.length).toBeGreaterThanOrEqual(2);
    for (const { privacy, endpoints } of free)
      expect([privacy, ...endpoints.map(({ upstream }) => upstream)]).toEqual(['anon', 'openrouter']);
    for (const { tariff } of catalogue.models.flatMap((model) => (isMediaModel(model) ? [] : model.endpoints))) {
      const usage = { input: 1, output: 1, request: 1 };
      const { cost, price } = calculateCostAndPrice(usage, tariff.prices);
      expect(cost > 0n).toBe(!isNamedFree({ id: tariff.of }));
      expect(price).toBeGreaterThanOrEqual(cost);
      expect(calculateMaxPrice(usage, tariff.prices)).toBeGreaterThanOrEqual(price);
    }
  });

  test('has longer contexts behind :extended', () => {
    const extended = catalogue.models.flatMap((model) =>
      'variants' in model && model.variants?.extended ? [[model, catalogue.findModel(model.variants.extended)]] : [],
    ) as [TokenPricedModel, TokenPricedModel][];
    expect(extended.length).toBeGreaterThanOrEqual(1);
    for (const [model, longer] of extended) expect(longer.context).toBeGreaterThan(model.context);
  });

  test('knows its models by their ids and aliases, and no other', () => {
    for (const model of catalogue.models) expect(catalogue.findModel(model.id)).toBe(model);
    expect(catalogue.findModel('gpt-5-mini')?.id).toBe('openai/gpt-5-mini');
    for (const id of ['', 'gpt-5-mini ', 'OPENAI/GPT-5-MINI', 'constructor'])
      expect(catalogue.findModel(id)).toBeUndefined();
  });

  test('is the same wherever it is read', () => {
    expect(readCatalogue().priceList).toEqual(catalogue.priceList);
  });
});

describe('the catalogue at the prices of an earlier list', () => {
  const catalogue = readCatalogue();
  const { lines, version } = catalogue.priceList;
  const doubled = ({ prices, ...line }: PriceListLine): PriceListLine => ({
    ...line,
    prices: prices.map((each) => ({ ...each, ...(each.price ? { price: `${BigInt(each.price) * 2n}` } : {}) })),
  });
  const then = catalogue.withPriceList({ version: 'then', lines: lines.map(doubled) });
  const without = (...names: readonly string[]) =>
    catalogue.withPriceList({ version: 'then', lines: lines.filter(({ of }) => !names.includes(of)) });
  const lookup = (from: typeof catalogue) => from.findDataEndpoint('web', 'search')?.endpoint.tariff.prices ?? [];
  const picture = (from: typeof catalogue) => from.findModel('openai/gpt-image-2')?.endpoints[0]?.tariff.prices ?? [];
  const found = (from: typeof catalogue) => from.findService('web_search')?.prices ?? [];

  test('is the same where that list is', () => {
    const again = catalogue.withPriceList({ version, lines });
    expect(again.models).toEqual(catalogue.models);
    expect(again.dataEndpoints).toEqual(catalogue.dataEndpoints);
    expect(again.priceList.version).toBe(version);
  });

  test('sells lookups, pictures and searches at what they were', () => {
    expect(then.priceList.version).toBe('then');
    for (const [prices, usage] of [
      [lookup, { lookup: 1 }],
      [picture, { image: 1 }],
      [found, { search: 1, request: 1 }],
    ] as const) {
      const [before, now] = [then, catalogue].map((each) => calculatePrice(usage, prices(each)));
      expect(now).toBeGreaterThan(0n);
      expect(before).toBe((now ?? 0n) * 2n);
    }
    expect(then.models.length).toBe(catalogue.models.length);
  });

  test('has nothing that was not sold then', () => {
    const less = without('web/search', 'openai/gpt-image-2', 'web_search');
    expect(less.findDataEndpoint('web', 'search')).toBeUndefined();
    expect(less.findDataEndpoint('web', 'answer')).toBeDefined();
    expect(less.findModel('openai/gpt-image-2')?.endpoints).toEqual([]);
    expect(less.findModel('openai/gpt-image-2')?.excludedEndpoints).toEqual({ openai: 'was not sold at that time' });
    expect(less.findService('web_search')).toBeUndefined();
  });

  test('is as small as the one that it is made of, whose vendors are not all here', () => {
    const here = catalogue.withAvailableEndpoints((upstream) => (upstream === 'exa' ? 'is away' : undefined));
    const both = here.withPriceList({ version: 'then', lines });
    expect(both.findDataEndpoint('web', 'search')).toBeUndefined();
    expect(both.dataEndpoints.length).toBe(here.dataEndpoints.length);
  });

  test('counts results where they had a cost then, and only there', () => {
    const byLookup = (line: PriceListLine): PriceListLine =>
      line.of === 'professionals/people-search'
        ? { ...line, prices: [{ unit: 'lookup', per: 1, cost: '1', price: '2' }] }
        : line;
    const earlier = catalogue.withPriceList({ version: 'then', lines: lines.map(byLookup) });
    expect(catalogue.findDataEndpoint('professionals', 'people-search')?.billed).toBeDefined();
    expect(earlier.findDataEndpoint('professionals', 'people-search')).toBeDefined();
    expect(earlier.findDataEndpoint('professionals', 'people-search')?.billed).toBeUndefined();
    const byResult = (line: PriceListLine): PriceListLine =>
      line.of === 'web/search' ? { ...line, prices: [...line.prices, { unit: 'result', per: 1, cost: '1' }] } : line;
    expect(
      catalogue.withPriceList({ version: 'then', lines: lines.map(byResult) }).findDataEndpoint('web', 'search'),
    ).toBeUndefined();
  });
});
