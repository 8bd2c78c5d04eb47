import { expect, test } from '@jest/globals';
import { Catalogue, importOpenRouterModels, parseModels } from '#catalogue';

/** A row in the format of OpenRouter's list. */
const row = (more: object = {}) => ({
  id: 'vendor/model',
  canonical_slug: 'vendor/model-2026',
  name: 'Vendor: Model',
  created: 1_771_200_000,
  description: 'A model.\n\nWith more to say.',
  context_length: 200_000,
  architecture: { modality: 'text+image->text', input_modalities: ['text', 'image'], output_modalities: ['text'] },
  pricing: { prompt: '0.000003', completion: '0.000015', request: '0', image: '0', input_cache_read: '0.0000003' },
  top_provider: { context_length: 200_000, max_completion_tokens: 64_000, is_moderated: false },
  supported_parameters: ['max_tokens', 'tools'],
  ...more,
});

const imported = (...rows: readonly object[]) => importOpenRouterModels({ data: rows }, '1.055');

test('converts a row to a valid catalogue entry with exact prices', () => {
  const { models, skipped } = imported(row());
  expect(skipped).toEqual([]);
  expect(models).toEqual([
    {
      id: 'vendor/model',
      type: 'chat',
      name: 'Vendor: Model',
      provider: 'vendor',
      description: 'A model.',
      released: '2026-02-16',
      popular: false,
      privacy: 'anon',
      inputs: ['text', 'image'],
      outputs: ['text'],
      context: 200_000,
      maxOutput: 64_000,
      endpoints: [
        {
          provider: 'OpenRouter',
          upstream: 'openrouter',
          model: 'vendor/model',
          usdPerMillionTokens: { input: '3', output: '15', cacheRead: '0.3' },
          margin: '1.055',
          routes: true,
          parameters: ['max_tokens', 'tools', 'provider'],
        },
      ],
    },
  ]);
  const { lines } = Catalogue.fromFiles(parseModels(models)).priceList;
  expect(lines[0]?.prices[0]).toMatchObject({ unit: 'input', per: 1_000_000, cost: '3000000000000' });
});

test('converts a price per request exactly, and small prices per token, also with an exponent', () => {
  const pricing = { prompt: '0.0000000375', completion: '1.5e-7', request: '0.005' };
  expect(imported(row({ pricing })).models[0]?.endpoints[0]).toMatchObject({
    usdPerMillionTokens: { input: '0.0375', output: '0.15' },
    usdPerRequest: '0.005',
  });
});

test('converts prices of long inputs to tiers, and drops audio and video inputs if audio costs more than text', () => {
  const pricing = {
    prompt: '0.000001',
    completion: '0.00001',
    input_cache_read: '0.0000001',
    audio: '0.000002',
    overrides: [
      { min_prompt_tokens: 200_000, prompt: '0.000002', completion: '0.000015' },
      { min_prompt_tokens: 500_000, prompt: '0.000003', input_cache_read: '0.0000002' },
      { utc_start: 1630, utc_end: 30, prompt: '0.0000005' },
    ],
  };
  const architecture = { input_modalities: ['text', 'audio', 'video', 'image'] };
  const [model] = parseModels(imported(row({ pricing, architecture })).models);
  expect(model).toMatchObject({
    inputs: ['text', 'image'],
    endpoints: [
      {
        usdPerMillionTokens: { input: '1', output: '10', cacheRead: '0.1' },
        tiers: [
          { above: 200_000, usdPerMillionTokens: { input: '2', output: '15', cacheRead: '0.1' } },
          { above: 500_000, usdPerMillionTokens: { input: '3', output: '15', cacheRead: '0.2' } },
        ],
      },
    ],
  });
});

test.each([
  ['a price that varies', { pricing: { prompt: '-1', completion: '-1' } }, 'no fixed price'],
  ['no price', { pricing: {} }, 'no fixed price'],
  [
    'a price that is higher on some days',
    {
      pricing: {
        prompt: '0.000001',
        completion: '0.000001',
        overrides: [{ utc_days: ['monday'], prompt: '0.000002' }],
      },
    },
    'more expensive at certain times',
  ],
  ['images only', { architecture: { output_modalities: ['image'] } }, 'does not output text'],
  ['no id', { id: '' }, 'no id'],
  ['an id with a line break', { id: 'a\nb: sold' }, 'a row: it has no id of printable ASCII characters'],
  ['no architecture', { architecture: null }, 'it cannot be read'],
  ['outputs that are no list', { architecture: { output_modalities: 5 } }, 'it cannot be read'],
  ['a description that is no text', { description: 5 }, 'it cannot be read'],
  ['a day that does not exist', { created: 1e30 }, 'it cannot be read'],
  ['a price that is no decimal', { pricing: { prompt: '0x10', completion: '1' } }, 'it cannot be read'],
])('skips and reports a row with %s', (_, more, why) => {
  const { models, skipped } = imported(row(more), row({ id: 'vendor/other' }));
  expect(models.map(({ id }) => id)).toEqual(['vendor/other']);
  expect(skipped).toEqual([expect.stringContaining(why)]);
});

test('skips what is no row', () => {
  const { models, skipped } = importOpenRouterModels({ data: [null, 5, row()] }, '1');
  expect(models).toHaveLength(1);
  expect(skipped).toEqual(Array(2).fill('a row: it has no id of printable ASCII characters'));
});

test('uses defaults for a missing context, maximum output, input and name', () => {
  const { models } = imported({ id: 'm', pricing: { prompt: '0', completion: '0' }, top_provider: {} });
  expect(parseModels(models)[0]).toMatchObject({ context: 8_192, maxOutput: 2_048, inputs: ['text'], name: 'm' });
});

test.each([null, [], { data: 5 }, 'list'])('rejects %j, which is not a list of models', (list) => {
  expect(() => importOpenRouterModels(list, '1')).toThrow('it must be a list of models');
});
