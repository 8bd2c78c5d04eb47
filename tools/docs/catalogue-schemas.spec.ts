/** Checks the JSON schemas of catalogue files for editors. `npm run docs` writes them instead. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';
import { DATA_FILE_SCHEMAS, getShippedCatalogueDir, MODEL_FILE_SCHEMA } from '#catalogue';
import { expectPage } from './expect-page.ts';
import { ROOT } from './pages.ts';

const SCHEMA_DIR = 'libs/catalogue/schemas';

const schemas: Readonly<Record<string, object>> = Object.fromEntries(
  Object.entries({ 'models.json': MODEL_FILE_SCHEMA, ...DATA_FILE_SCHEMAS }).map(([file, schema]) => [
    file,
    z.toJSONSchema(schema, { io: 'input' }),
  ]),
);

function compileSchema(file: string) {
  return new Ajv2020({ validateFormats: false, allErrors: true }).compile(
    schemas[file] ?? schemas['models.json'] ?? false,
  );
}

function readShipped(file: string): string {
  return readFileSync(path.join(getShippedCatalogueDir(), file), 'utf8');
}

test('libs/catalogue/schemas has the schemas of the catalogue files', () => {
  const toSchemaName = (file: string) => file.replace('.json', '.schema.json');
  for (const [file, schema] of Object.entries(schemas))
    expectPage(`${SCHEMA_DIR}/${toSchemaName(file)}`, `${JSON.stringify(schema, undefined, 2)}\n`);

  expect(readdirSync(path.join(ROOT, SCHEMA_DIR)).sort()).toEqual(Object.keys(schemas).map(toSchemaName).sort());
});

describe.each(readdirSync(getShippedCatalogueDir()))('the schema of %s', (file) => {
  test('accepts the shipped file', () => {
    const isValid = compileSchema(file);

    expect([isValid(JSON.parse(readShipped(file))), isValid.errors]).toEqual([true, null]);
  });
});

test.each([
  ['models.json', 'margin'],
  ['images.json', 'usdPerUnit'],
  ['data-endpoints.json', 'costUsd'],
  ['fees.json', 'priceUsd'],
  ['model-rules.json', 'efforts'],
  ['payments.json', 'fixedRate'],
  ['providers.json', 'bill'],
  ['voices.json', 'gender'],
])('the schema of %s rejects a misspelt %s', (file, field) => {
  const isValid = compileSchema(file);
  const misspelt = readShipped(file).replace(`"${field}":`, `"${field}s":`);

  expect(isValid(JSON.parse(misspelt))).toBe(false);
  expect(isValid.errors).toContainEqual(expect.objectContaining({ params: { additionalProperty: `${field}s` } }));
});
