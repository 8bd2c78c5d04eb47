import { expect, test } from '@jest/globals';
import { MatchesSchema, MatchesSchemaIfPresent } from './matches-schema.ts';
import { validateDto } from './validation.ts';

class Order {
  @MatchesSchema({
    type: 'array',
    minItems: 1,
    maxItems: 3,
    items: {
      type: ['object', 'string'],
      properties: {
        kind: { enum: ['a', 'b'] },
        name: { type: 'string', minLength: 1 },
        'a/b': { type: 'boolean' },
        sizes: { type: 'array', items: { type: 'integer' } },
      },
      required: ['kind', 'untyped'],
      if: { properties: { kind: { const: 'a' } }, required: ['kind'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['name'] },
      else: { required: ['sizes'] },
    },
  })
  lines!: unknown;

  @MatchesSchemaIfPresent({ type: 'object', propertyNames: { pattern: '^[0-9]+$', description: 'numbers' } })
  weights?: unknown;
}

const line = { kind: 'a', name: 'x', untyped: 1 };

test.each<[string, object]>([
  ['lines must be an array', {}],
  ['lines must be an array', { lines: null }],
  ['lines must be a non-empty array', { lines: [] }],
  ['lines must be an array of at most 3 values', { lines: ['', '', '', ''] }],
  ['lines[1] must be an object or a string', { lines: ['', 5] }],
  ['lines[0].kind must be given', { lines: [{ untyped: 1, sizes: [] }] }],
  ['lines[0].untyped must be given', { lines: [{ kind: 'a', name: 'x' }] }],
  ['lines[0].kind must be one of a, b', { lines: [{ ...line, kind: 'c', sizes: [] }] }],
  ['lines[0].name must be a string', { lines: [{ kind: 'a', untyped: 1 }] }],
  ['lines[0].name must be a non-empty string', { lines: [{ ...line, name: '' }] }],
  ['lines[0].sizes must be an array', { lines: [{ kind: 'b', untyped: 1 }] }],
  ['lines[0].sizes[1] must be an integer', { lines: [{ ...line, sizes: [1, 0.5] }] }],
  ['lines[0].a/b must be a boolean', { lines: [{ ...line, 'a/b': 1 }] }],
  ['weights must be an object whose names are numbers', { lines: [line], weights: { a: 1 } }],
])('says that %s', (message, body) => {
  const [param] = message.split(' ');
  expect(() => validateDto(Order, body)).toThrow(expect.objectContaining({ message, param }));
});

test('fields that only the prototype has are missing', () => {
  const inherited = Object.assign(Object.create(line), { sizes: [] });
  expect(() => validateDto(Order, { lines: [inherited] })).toThrow('lines[0].kind must be given');
});

test('content that the schema does not mention is accepted, and a field that is null and not required', () => {
  const body = { lines: [{ ...line, other: 1 }, 'text'], weights: null, others: [] };
  expect(validateDto(Order, body)).toMatchObject(body);
});
