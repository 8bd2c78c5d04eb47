import { describe, expect, test } from '@jest/globals';
import { createTestEndpoint, createTestModel } from '#testing';
import { Catalogue } from './catalogue.ts';
import { parseModels } from './data-files.ts';
import type { AnyModelFile } from './media-file.ts';

const LISTS = { 'openai-sampling': ['max_tokens'] };

const endpoint = (provider: string, retires?: string) =>
  createTestEndpoint(provider, provider.toLowerCase(), retires === undefined ? {} : { retires });

function buildModel(id: string, fields: object = {}, endpoints: readonly object[] = [endpoint('OpenAI')]) {
  return createTestModel(id, endpoints, fields);
}

function buildCatalogue(...models: readonly object[]): Catalogue {
  return Catalogue.fromFiles(parseModels(models) as readonly AnyModelFile[], { lists: LISTS });
}

const ids = (models: readonly { readonly id: string }[]) => models.map(({ id }) => id);

const OLD = buildModel('v/old', { retires: '2026-12-11', successor: 'v/middle', aliases: ['old'] });
const MIDDLE = buildModel('v/middle', { retires: '2027-01-14', successor: 'v/new' });
const NEW = buildModel('v/new');

describe('a model with a retirement day', () => {
  const catalogue = buildCatalogue(OLD, MIDDLE, NEW);

  test.each([
    ['2026-12-10', ['v/old', 'v/middle', 'v/new'], []],
    ['2026-12-11', ['v/middle', 'v/new'], ['v/old']],
    ['2027-01-14', ['v/new'], ['v/old', 'v/middle']],
  ])('is sold until the day before: on %s', (day, living, retired) => {
    const today = catalogue.onDay(day);

    expect([ids(today.models), ids(today.retiredModels)]).toEqual([living, retired]);
  });

  test.each([
    ['2026-11-10', undefined],
    ['2026-11-11', { day: '2026-12-11', isOver: false, successor: 'v/middle' }],
    ['2026-12-11', { day: '2026-12-11', isOver: true, successor: 'v/middle' }],
    ['2027-01-13', { day: '2026-12-11', isOver: true, successor: 'v/middle' }],
    ['2027-01-14', { day: '2026-12-11', isOver: true, successor: 'v/new' }],
  ])('has a notice from 30 days before, with the first living successor: on %s', (day, retirement) => {
    expect(catalogue.onDay(day).findRetirement({ id: 'v/old' })).toEqual(retirement);
  });

  test('is found by its id and its aliases after its end', () => {
    const today = catalogue.onDay('2027-02-01');

    expect([today.findModel('v/old')?.id, today.findModel('old')?.id]).toEqual(['v/old', 'v/old']);
  });

  test('does not change the price list', () => {
    const undated = buildCatalogue(buildModel('v/old'), buildModel('v/middle'), NEW);

    expect(catalogue.priceList).toEqual(undated.priceList);
    expect(catalogue.onDay('2027-02-01').priceList).toEqual(undated.priceList);
  });

  test('has no successor if none can be requested here', () => {
    const today = catalogue.onDay('2027-02-01').withAvailableEndpoints({
      findMissingSetting: () => 'OPENAI_API_KEY',
      isSimulated: () => false,
      hasZdrAgreement: () => false,
    });

    expect(today.findRetirement({ id: 'v/old' })).toEqual({ day: '2026-12-11', isOver: true });
  });

  test('is retired by each later day, also if a day is applied after another one', () => {
    const today = catalogue.onDay('2026-12-11').onDay('2027-01-14');

    expect(ids(today.retiredModels)).toEqual(['v/old', 'v/middle']);
  });
});

describe('an endpoint with a retirement day', () => {
  const shared = buildModel('v/shared', {}, [endpoint('OpenAI', '2026-12-01'), endpoint('Groq')]);

  test('leaves the routes of its model, with the reason', () => {
    const [model] = buildCatalogue(shared).onDay('2026-12-01').models;

    expect(model?.endpoints.map(({ slug }) => slug)).toEqual(['groq']);
    expect(model?.excludedEndpoints).toEqual({ openai: 'was retired on 2026-12-01' });
  });

  test('has a notice of its own', () => {
    const catalogue = buildCatalogue(shared).onDay('2026-11-29');
    const days = catalogue.models[0]?.endpoints.map((one) =>
      catalogue.findEndpointRetirementDay({ id: 'v/shared' }, one),
    );

    expect(days).toEqual(['2026-12-01', undefined]);
  });

  test('retires the model if it is the last one', () => {
    const last = buildModel('v/last', { successor: 'v/new' }, [
      endpoint('OpenAI', '2026-12-01'),
      endpoint('Groq', '2026-12-20'),
    ]);
    const catalogue = buildCatalogue(last, NEW);

    expect(ids(catalogue.onDay('2026-12-19').models)).toEqual(['v/last', 'v/new']);
    expect(catalogue.onDay('2026-12-20').findRetirement({ id: 'v/last' })).toEqual({
      day: '2026-12-20',
      isOver: true,
      successor: 'v/new',
    });
  });

  test('leaves a model whose other provider is not available here to the setting of that provider', () => {
    const here = buildCatalogue(shared)
      .onDay('2026-12-01')
      .withAvailableEndpoints({
        findMissingSetting: (upstream) => (upstream === 'groq' ? 'GROQ_API_KEY' : undefined),
        isSimulated: () => false,
        hasZdrAgreement: () => false,
      });

    expect(here.listMissingSettings('v/shared')).toEqual(['GROQ_API_KEY']);
  });
});

const IMAGE = {
  id: 'v/image',
  type: 'image',
  name: 'Image',
  provider: 'Test',
  description: 'A model.',
  released: '2026-01-01',
  popular: false,
  privacy: 'anon',
  inputs: ['text'],
  outputs: ['image'],
  capabilities: ['text_to_image'],
  maxImages: 1,
  endpoints: [
    {
      provider: 'OpenAI',
      upstream: 'openai',
      model: 'image',
      margin: '1.15',
      parameters: ['size'],
      imagesPerCall: 1,
      usdPerUnit: { unit: 'image', usd: '0.1' },
    },
  ],
};

const EDITS = { inputs: ['text', 'image'], capabilities: ['text_to_image', 'edit'] };

test.each([
  ['retires', [buildModel('v/a', { retires: '2026-02-30' })], 'must be a date, such as "2026-11-20"'],
  [
    'endpoints[0].retires',
    [buildModel('v/a', {}, [{ ...endpoint('OpenAI'), retires: 'soon' }])],
    'must be a date, such as "2026-11-20"',
  ],
  ['successor', [buildModel('v/a', { successor: 'v/new' }), NEW], 'is only allowed together with retires'],
  [
    'successor',
    [buildModel('v/a', { retires: '2026-12-01', successor: 'v/none' })],
    'names "v/none", which is not the id of a model',
  ],
  [
    'successor',
    [buildModel('v/a', { retires: '2026-12-01', successor: 'v/image' }), IMAGE],
    'names "v/image", whose type is image instead of chat',
  ],
  [
    'successor',
    [{ ...IMAGE, id: 'v/a', retires: '2026-12-01', successor: 'v/image', ...EDITS }, IMAGE],
    'names "v/image", which does not support edit',
  ],
  ['successor', [buildModel('v/a', { retires: '2026-12-01', successor: 'v/a' })], 'leads back to "v/a"'],
  [
    'successor',
    [
      buildModel('v/a', { retires: '2026-12-01', successor: 'v/b' }),
      buildModel('v/b', { retires: '2026-12-01', successor: 'v/a' }),
    ],
    'leads back to "v/a"',
  ],
])('rejects an invalid %s: %#', (field, models, problem) => {
  expect(() => buildCatalogue(...models)).toThrow(`${field} of model "v/a" ${problem}`);
});
