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

/** Writes the content to `models.json` and returns a function that reads the catalogue. */
async function reading(content: unknown) {
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return () => readCatalogue(directory);
}

/** Returns a valid model with one field changed, or omitted if `value` is undefined. */
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
  test('results in tariffs with the creditor, costs in pico-USD, and prices that include the margin', async () => {
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

  test('results in prices for 10,000 times as many units if the margin leaves fractions of a pico-USD', async () => {
    const { priceList } = (await reading([changed('endpoints.0.usdPerRequest', '0.000000000001')]))();
    const request = priceList.lines[0]?.prices.find(({ unit }) => unit === 'request');
    expect(request).toEqual({ unit: 'request', per: 10_000, cost: '10000', price: '10550' });
  });

  test('results in a price list whose version changes with prices and models, not with texts or limits', async () => {
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
    ['a price of 0', 'endpoints.0.usdPerMillionTokens.input', '0'],
    ['a price of one pico-USD', 'endpoints.0.usdPerRequest', '0.000000000001'],
    ['a price in exponent form', 'endpoints.0.usdPerRequest', '1e-7'],
    ['a margin below 1', 'endpoints.0.margin', '0.5'],
  ])('may have %s', async (_, field, value) => {
    expect(await reading([changed(field, value)])).not.toThrow();
  });
});

test('resolves the name of a parameter list in an endpoint', async () => {
  const { models } = (await reading([changed('endpoints.0.parameters', 'few')]))();
  expect(models[0]?.endpoints[0]?.parameters).toEqual(['max_tokens', 'stop']);
});

describe('the rules of an endpoint', () => {
  const rulesOf = async (model: object) => (await reading([model]))().models[0]?.endpoints[0]?.modelRules;

  test('are those of the named set, by default of the set with the name of its parameter list', async () => {
    const sets = { few: { prefill: false }, other: { efforts: ['low'] } };
    await writeFile(path.join(directory, 'model-rules.json'), JSON.stringify(sets));
    const few = changed('endpoints.0.parameters', 'few') as ReturnType<typeof good>;
    const [endpoint] = few.endpoints;
    expect(await rulesOf(few)).toEqual(sets.few);
    expect(await rulesOf({ ...few, endpoints: [{ ...endpoint, modelRules: 'other' }] })).toEqual(sets.other);
    expect(await rulesOf({ ...few, endpoints: [{ ...endpoint, modelRules: { prefill: true } }] })).toEqual({
      prefill: true,
    });
    await rm(path.join(directory, 'model-rules.json'));
  });

  test('are none without a set, and those of the shipped file in a directory without its own', async () => {
    expect(await rulesOf(good())).toEqual({});
    expect(await rulesOf(changed('endpoints.0.modelRules', 'openai-o'))).toEqual({
      efforts: ['low', 'medium', 'high'],
    });
  });
});

describe('a data file is rejected if it has', () => {
  test.each([
    ['no JSON', 'models', /Unexpected token/],
    ['an extra comma', '[\n{"id": "a",}\n]', /line 2 column 12/],
    ['no content', '', /end of JSON/],
    ['no list', { models: [] }, /it must be a list of models/],
    ['a number instead of a model', [good(), 5], /model 2 must be an object/],
    ['a model without an id', [changed('id', undefined)], /id of model 1 must be a non-empty string/],
  ])('%s', async (_, content, message) => {
    const read = await reading(content);
    expect(read).toThrow(message);
    expect(read).toThrow(file);
  });

  test('no existing directory', () => {
    expect(() => readCatalogue(path.join(directory, 'nothing'))).toThrow(/nothing cannot be used: ENOENT/);
  });

  test.each([
    ['a duplicate model', [good(), changed('name', 'Another')], 'model "vendor/model" is defined twice'],
    ['an alias that is another id', [good(), { ...good(), id: 'a', aliases: ['vendor/model'] }], 'defined twice'],
    [
      'a duplicate provider',
      [changed('endpoints', [...good().endpoints, ...good().endpoints])],
      'provider of model "vendor/model" is open-ai, which another endpoint already has',
    ],
    ['an unknown variant', [changed('variants', { thinking: 'lost' })], 'names "lost", which is not a chat model'],
    ['an unknown fee', [changed('endpoints.0.searchFee', 'any')], 'names the fee "any", which does not exist'],
    ['an unknown list', [changed('endpoints.0.parameters', 'many')], 'names the list "many", which does not exist'],
    ['unknown rules', [changed('endpoints.0.modelRules', 'lost')], 'names the rules "lost", which do not exist'],
  ])('%s, which a check of single entries does not find', async (_, content, message) => {
    expect(await reading(content)).toThrow(message);
  });

  const price = 'endpoints.0.usdPerMillionTokens.input';
  test.each<[string, string, unknown]>([
    ['a negative price', price, '-0.25'],
    ['a price that is a JSON number', price, 0.25],
    ['a price that is a word', price, 'free'],
    ['a price with a unit', price, '$0.25'],
    ['a price with a comma', price, '0,25'],
    ['a price finer than a pico-USD', price, '0.0000000000001'],
    ['no price', price, undefined],
    ['no output price', 'endpoints.0.usdPerMillionTokens.output', undefined],
    ['no prices at all', 'endpoints.0.usdPerMillionTokens', undefined],
    ['a negative cache price', 'endpoints.0.usdPerMillionTokens.cacheWrite', '-1'],
    ['a negative price per request', 'endpoints.0.usdPerRequest', '-0.01'],
    ['a price per request that is null', 'endpoints.0.usdPerRequest', null],
    ['no margin', 'endpoints.0.margin', undefined],
    ['a margin of 0', 'endpoints.0.margin', '0'],
    ['a negative margin', 'endpoints.0.margin', '-1'],
    ['a margin with too many decimals', 'endpoints.0.margin', '1.05555'],
    ['a margin that is a JSON number', 'endpoints.0.margin', 1.055],
    ['no upstream', 'endpoints.0.upstream', ''],
    ['no upstream model', 'endpoints.0.model', undefined],
    ['an unknown quantization', 'endpoints.0.quantization', 'int5'],
    ['a share above one', 'endpoints.0.toolReliability', 1.5],
    ['an unknown rule', 'endpoints.0.modelRules', { tempo: 'slow' }],
    ['an unknown effort', 'endpoints.0.modelRules', { efforts: ['low', 'extreme'] }],
    ['a repeated effort', 'endpoints.0.modelRules', { efforts: ['low', 'low'] }],
    ['no effort with which the model reasons', 'endpoints.0.modelRules', { efforts: ['none'] }],
    ['a maximum of no choices', 'endpoints.0.maxChoices', 0],
    ['an unknown type', 'type', 'text'],
    ['a parameter that is not a string', 'endpoints.0.parameters', ['max_tokens', 5]],
    ['no endpoint', 'endpoints', []],
    ['a context of 0', 'context', 0],
    ['a context that is a string', 'context', '1000'],
    ['a fraction of a token', 'maxOutput', 1.5],
    ['more output than context', 'maxOutput', 1001],
    ['more usual output than output', 'longOutput', 101],
    ['a usual output of 0', 'longOutput', 0],
    ['a date that does not exist', 'released', '2026-02-29'],
    ['a date with a time', 'released', '2026-02-28T00:00:00.000Z'],
    ['an unknown privacy level', 'privacy', 'secret'],
    ['a popularity that is not a boolean', 'popular', 'yes'],
    ['no inputs', 'inputs', []],
    ['no name', 'name', ' '],
    ['a mark of the free tier that is not a boolean', 'freeTier', 'true'],
  ])('%s', async (_, field, value) => {
    const read = await reading([changed(field, value)]);
    expect(read).toThrow(field.split('.').at(-1));
    expect(read).toThrow('model "vendor/model"');
    expect(read).toThrow(file);
  });

  const ZERO = { input: '0', output: '0' };
  test.each<[string, object, string]>([
    ['a price per token', {}, 'usdPerMillionTokens'],
    [
      'a price of long inputs',
      { usdPerMillionTokens: ZERO, tiers: [{ above: 9, usdPerMillionTokens: { ...ZERO, input: '1' } }] },
      'tiers',
    ],
    ['a price per request', { usdPerMillionTokens: ZERO, usdPerRequest: '0.01' }, 'usdPerRequest'],
  ])('%s in the free tier', async (_, prices, field) => {
    const endpoints = [{ ...good().endpoints[0], ...prices }];
    for (const marked of [{ id: 'vendor/model:free' }, { freeTier: true }])
      expect(await reading([{ ...good(), endpoints, ...marked }])).toThrow(`${field} of model`);
    expect(await reading([{ ...good(), endpoints }])).not.toThrow();
  });

  test.each([
    ['usdPerRequst', 'endpoints.0.usdPerRequst'],
    ['cacheread', 'endpoints.0.usdPerMillionTokens.cacheread'],
    ['margin', 'margin'],
  ])('an unknown field "%s"', async (name, field) => {
    expect(await reading([changed(field, '1')])).toThrow(`has an unknown field "${name}"`);
  });
});

describe('the shipped catalogue', () => {
  const catalogue = readCatalogue();

  test('has the expected costs of some models in USD per million tokens and per request', () => {
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

  test('has endpoints that agree on whether their model continues a message of the assistant', () => {
    const mixed = catalogue.models.filter(
      ({ endpoints }) => new Set(endpoints.map(({ modelRules }) => modelRules?.prefill ?? true)).size > 1,
    );
    expect(mixed.map(({ id }) => id)).toEqual([]);
  });

  test('has the router as the creditor of an endpoint that the router serves', () => {
    const [endpoint] = catalogue.findModel('google/gemini-2.5-pro')?.endpoints ?? [];
    expect(endpoint?.tariff).toMatchObject({
      of: 'google/gemini-2.5-pro',
      provider: 'google-vertex',
      creditor: 'openrouter',
    });
  });

  test('sells token-priced models at no less than their cost, which is 0 only for free models', () => {
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

  test('has a longer context for every :extended variant', () => {
    const extended = catalogue.models.flatMap((model) =>
      'variants' in model && model.variants?.extended ? [[model, catalogue.findModel(model.variants.extended)]] : [],
    ) as [TokenPricedModel, TokenPricedModel][];
    expect(extended.length).toBeGreaterThanOrEqual(1);
    for (const [model, longer] of extended) expect(longer.context).toBeGreaterThan(model.context);
  });

  test('finds models by their ids and aliases, but not by other spellings', () => {
    for (const model of catalogue.models) expect(catalogue.findModel(model.id)).toBe(model);
    expect(catalogue.findModel('gpt-5-mini')?.id).toBe('openai/gpt-5-mini');
    for (const id of ['', 'gpt-5-mini ', 'OPENAI/GPT-5-MINI', 'constructor'])
      expect(catalogue.findModel(id)).toBeUndefined();
  });

  test('has the same price list when it is read again', () => {
    expect(readCatalogue().priceList).toEqual(catalogue.priceList);
  });
});

describe('a catalogue with an earlier price list', () => {
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

  test('has the same models and lookups if the list is the same', () => {
    const again = catalogue.withPriceList({ version, lines });
    expect(again.models).toEqual(catalogue.models);
    expect(again.dataEndpoints).toEqual(catalogue.dataEndpoints);
    expect(again.priceList.version).toBe(version);
  });

  test('sells lookups, images and searches at the prices of the list', () => {
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

  test('excludes a lookup, an endpoint and a service that are not in the list', () => {
    const less = without('web/search', 'openai/gpt-image-2', 'web_search');
    expect(less.findDataEndpoint('web', 'search')).toBeUndefined();
    expect(less.findDataEndpoint('web', 'answer')).toBeDefined();
    expect(less.findModel('openai/gpt-image-2')?.endpoints).toEqual([]);
    expect(less.findModel('openai/gpt-image-2')?.excludedEndpoints).toEqual({ openai: 'was not sold at that time' });
    expect(less.findService('web_search')).toBeUndefined();
  });

  test('still excludes endpoints of unavailable providers', () => {
    const here = catalogue.withAvailableEndpoints({
      findMissingSetting: (upstream) => (upstream === 'exa' ? 'EXA_API_KEY' : undefined),
      isSimulated: () => true,
      hasZdrAgreement: () => true,
    });
    const both = here.withPriceList({ version: 'then', lines });
    expect(both.findDataEndpoint('web', 'search')).toBeUndefined();
    expect(both.dataEndpoints.length).toBe(here.dataEndpoints.length);
  });

  test('has a search without data retention if its provider has agreed to that', () => {
    const at = (...upstreams: readonly string[]) =>
      catalogue.withAvailableEndpoints({
        findMissingSetting: () => undefined,
        isSimulated: () => false,
        hasZdrAgreement: (upstream) => upstreams.includes(upstream),
      });
    expect(at('openai').hasZeroDataRetention('web_search')).toBe(false);
    expect(at('exa').hasZeroDataRetention('web_search')).toBe(true);
    expect(at('openai', 'exa').hasZeroDataRetention('web_search_openai')).toBe(false);
  });

  test('has a model that only the sandbox serves if its provider is simulated', () => {
    const at = (isSimulated: boolean) =>
      catalogue.withAvailableEndpoints({
        findMissingSetting: () => undefined,
        isSimulated: () => isSimulated,
        hasZdrAgreement: () => isSimulated,
      });
    expect(at(true).findModel('flat')?.id).toBe('countinghouse/flat');
    expect(at(false).findModel('flat')).toBeUndefined();
    expect(at(false).models.length).toBe(catalogue.models.length - 1);
  });

  test('counts results only if the list has a cost for them, and excludes a lookup that cannot count them', () => {
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
