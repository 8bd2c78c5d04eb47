/** Copies the shipped catalogue, and adds models and payment methods for specs. */
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { getShippedCatalogueDir, readPayments } from '#catalogue';
import type { PaymentTerms } from '#domain';

/** Name of the catalogue file with the models of specs. */
export const TEST_MODELS = 'test.json';

/**
 * The day on which worlds and built programs of specs use the catalogue, so that no spec fails because a model has
 * retired since.
 */
export const TEST_DAY = '2026-03-01';

/** Copies the shipped catalogue to a new directory and adds models. */
export async function copyCatalogue(directory: string, models: readonly object[]): Promise<void> {
  await cp(getShippedCatalogueDir(), directory, { recursive: true });
  await writeFile(path.join(directory, TEST_MODELS), JSON.stringify(models));
}

/**
 * Copies the shipped catalogue without the ends of its models, and adds models. Programs that call other servers than
 * those of the sandbox reject `CATALOGUE_DAY`, so that they use the catalogue of today.
 */
export async function copyUndatedCatalogue(directory: string, models: readonly object[] = []): Promise<void> {
  await copyCatalogue(directory, []);
  for (const name of await readdir(directory)) {
    const file = path.join(directory, name);
    const content = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(
      file,
      JSON.stringify(content, (field, value) => (END_FIELDS.has(field) ? undefined : value)),
    );
  }
  await writeFile(path.join(directory, TEST_MODELS), JSON.stringify(models));
}
const END_FIELDS: ReadonlySet<string> = new Set(['retires', 'successor']);

/** Creates a catalogue with only these chat models and without lookups, which is checked faster than the shipped one. */
export async function createSmallCatalogue(directory: string, models: readonly object[]): Promise<void> {
  await copyUndatedCatalogue(directory, models);
  for (const name of ['models.json', 'data-endpoints.json']) await writeFile(path.join(directory, name), '[]');
}

/** Adds coins and payment methods to a copy of the catalogue. */
export async function addPaymentMethods(directory: string, { coins, methods }: PaymentTerms): Promise<void> {
  const shipped = readPayments(directory);
  const all = { coins: [...shipped.coins, ...coins], methods: [...shipped.methods, ...methods] };
  await writeFile(path.join(directory, 'payments.json'), JSON.stringify(all));
}

/** Creates a model of a catalogue file. @param endpoints results of `createTestEndpoint` */
export function createTestModel(id: string, endpoints: readonly object[], overrides: object = {}) {
  return {
    id,
    type: 'chat',
    name: id,
    provider: 'Test',
    description: 'A model to test with.',
    released: '2026-01-01',
    popular: false,
    privacy: 'anon',
    inputs: ['text'],
    context: 128_000,
    maxOutput: 16_384,
    endpoints,
    ...overrides,
  };
}

/** Creates an endpoint whose model the sandbox serves. @param upstream slug of the provider that is called */
export function createTestEndpoint(provider: string, upstream: string, overrides: object = {}) {
  return {
    provider,
    upstream,
    model: 'gpt-4o-mini',
    usdPerMillionTokens: { input: '0.15', cacheRead: '0.075', output: '0.6' },
    margin: '1.055',
    parameters: 'openai-sampling',
    ...overrides,
  };
}
