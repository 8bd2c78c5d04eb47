import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { createPicker, createSample } from './schemas.ts';

const SEEDS = Array.from({ length: 40 }, (_, i) => `request ${i}`);

const item = { type: 'object', properties: { id: { type: 'string' }, n: { type: 'number' } }, required: ['id'] };

describe('a random value', () => {
  test.each<[string, object]>([
    ['optional properties', { ...item, properties: { ...item.properties, more: item } }],
    ['lists of limited length', { type: 'array', minItems: 1, maxItems: 2, items: item }],
    ['numbers within bounds', { type: 'integer', minimum: -4, exclusiveMaximum: 3 }],
    ['a fraction between whole numbers', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 }],
    ['multiples', { type: 'integer', multipleOf: 5, minimum: 12, maximum: 40 }],
    ['texts of limited length', { type: 'string', minLength: 3, maxLength: 6 }],
    ['alternatives', { anyOf: [{ type: 'null' }, item, { enum: ['a', 'b'] }] }],
    [
      'references to itself',
      { type: 'object', properties: { list: { type: 'array', items: { $ref: '#' } } }, required: ['list'] },
    ],
  ])('conforms to a schema with %s', (_, schema) => {
    const conforms = new Ajv2020().compile(schema);
    for (const seed of SEEDS) expect(conforms(createSample(schema, createPicker(seed)))).toBe(true);
  });

  test('is the same for the same seed, and 40 seeds result in more than 20 different values', () => {
    const schema = { type: 'array', minItems: 4, items: { type: 'integer', minimum: 0 } };
    const values = SEEDS.map((seed) => JSON.stringify(createSample(schema, createPicker(seed))));
    expect(values).toEqual(SEEDS.map((seed) => JSON.stringify(createSample(schema, createPicker(seed)))));
    expect(new Set(values).size).toBeGreaterThan(SEEDS.length / 2);
  });
});
