import { describe, expect, test } from '@jest/globals';
import { type JsonObject } from '#kernel';
import { toMessagesRequest } from './request.ts';
import { toStructuredSchema } from './structured-schema.ts';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const closed = (properties: object, more: object = {}) => object(properties, { additionalProperties: false, ...more });
const text = { type: 'string' };

describe('a schema for Anthropic', () => {
  test.each<[string, object, object]>([
    ['closes objects', object({ a: object({}) }), closed({ a: closed({}) })],
    ['keeps required properties', object({ a: text }, { required: ['a'] }), closed({ a: text }, { required: ['a'] })],
    [
      'moves limits of texts and numbers to the description',
      object({
        a: { type: 'string', minLength: 2, pattern: '^x' },
        n: { type: 'integer', description: 'Age', maximum: 9 },
      }),
      closed({
        a: { type: 'string', description: '{"minLength":2,"pattern":"^x"}' },
        n: { type: 'integer', description: 'Age\n\n{"maximum":9}' },
      }),
    ],
    [
      'keeps known formats',
      object({ a: { type: 'string', format: 'date' } }),
      closed({ a: { type: 'string', format: 'date' } }),
    ],
    [
      'moves unknown formats to the description',
      object({ a: { type: 'string', format: 'phone' } }),
      closed({ a: { type: 'string', description: '{"format":"phone"}' } }),
    ],
    [
      'keeps a minimum of one item, and moves other limits of lists to the description',
      object({
        a: { type: 'array', items: text, minItems: 1, maxItems: 3 },
        b: { type: 'array', items: text, minItems: 2 },
      }),
      closed({
        a: { type: 'array', items: text, minItems: 1, description: '{"maxItems":3}' },
        b: { type: 'array', items: text, description: '{"minItems":2}' },
      }),
    ],
    ['sends oneOf as anyOf', { oneOf: [object({}), { type: 'null' }] }, { anyOf: [closed({}), { type: 'null' }] }],
    [
      'keeps enums and constants of plain values',
      { anyOf: [{ enum: [1, null] }, { const: 'x' }] },
      { anyOf: [{ enum: [1, null] }, { const: 'x' }] },
    ],
    [
      'keeps lists of plain types',
      object({ a: { type: ['string', 'null'] } }),
      closed({ a: { type: ['string', 'null'] } }),
    ],
    [
      'divides lists of types with an object',
      { type: ['object', 'null'], properties: { a: text } },
      { anyOf: [closed({ a: text }), { type: 'null' }] },
    ],
    [
      'gives each keyword of a list of types to one type only, and otherwise to all of them',
      { type: ['object', 'string', 'integer'], properties: { a: text }, format: 'date', minLength: 2, maximum: 9 },
      {
        anyOf: [
          closed({ a: text }),
          { type: 'string', format: 'date', description: '{"minLength":2}' },
          { type: 'integer' },
        ],
        description: '{"maximum":9}',
      },
    ],
    [
      'closes referenced definitions',
      object(
        { a: { $ref: '#/$defs/place' } },
        { $defs: { place: object({ b: { $ref: '#/$defs/name' } }), name: text } },
      ),
      closed(
        { a: { $ref: '#/$defs/place' } },
        { $defs: { place: closed({ b: { $ref: '#/$defs/name' } }), name: text } },
      ),
    ],
    [
      'unwraps a single schema in allOf',
      { allOf: [object({ a: text })], description: 'One' },
      closed({ a: text }, { description: 'One' }),
    ],
    ['infers the type from the properties', { properties: { a: text } }, closed({ a: text })],
    ['omits the dialect', { $schema: 'https://json-schema.org/draft/2020-12/schema', ...text }, text],
  ])('%s', async (_, schema, expected) => {
    expect(await toStructuredSchema(schema)).toEqual(expected);
  });

  test('retains properties and definitions with the names of built-in ones', async () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}},"required":["__proto__"],"$defs":{"__proto__":{"type":"string"}}}',
    );
    expect(JSON.parse(JSON.stringify(await toStructuredSchema(schema)))).toEqual({
      ...schema,
      additionalProperties: false,
    });
  });

  test('does not grow with each level if a type is repeated', async () => {
    let schema: object = text;
    for (let depth = 0; depth < 12; depth++) schema = { type: ['object', 'object'], properties: { a: schema } };
    const converted = await toStructuredSchema(schema);
    expect(JSON.stringify(converted).length).toBeLessThan(3 * JSON.stringify(schema).length);
  });
});

/** Schemas that Anthropic cannot enforce. */
const UNENFORCEABLE: readonly (readonly [string, JsonObject])[] = [
  ['a recursive schema', object({ child: { $ref: '#' } })],
  [
    'recursive definitions',
    object(
      { a: { $ref: '#/$defs/a' } },
      { $defs: { a: object({ b: { $ref: '#/$defs/b' } }), b: object({ a: { $ref: '#/$defs/a' } }) } },
    ),
  ],
  ['a map', object({ a: { type: 'object', additionalProperties: { type: 'integer' } } })],
  ['an object of any kind', object({ a: { type: 'object' } })],
  ['a value of any kind', object({ a: {} })],
  ['a type that does not exist', object({ a: { type: ['object', 'map'], properties: { b: text } } })],
  ['several schemas at once', { allOf: [object({ a: text }), object({ b: text })] }],
  ['a reference to nothing', object({ a: { $ref: '#/$defs/lost' } })],
  ['a reference to another document', object({ a: { $ref: 'https://example.com/schema' } })],
];

describe('a schema that Anthropic cannot enforce', () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  const translated = (body: JsonObject) =>
    toMessagesRequest({ model: 'm', messages, ...body }, { defaultMaxTokens: 9, modelRules: {} });

  test.each(UNENFORCEABLE)('is an instruction of the system message: %s', async (_, schema) => {
    const request = await translated({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } });
    expect(request.output_config).toBeUndefined();
    expect(request.system).toEqual([{ type: 'text', text: expect.stringContaining(JSON.stringify(schema)) }]);
  });

  test.each(UNENFORCEABLE)('is that of a tool that is not strict: %s', async (_, parameters) => {
    const tools = [{ type: 'function', function: { name: 'f', strict: true, parameters } }];
    expect((await translated({ tools })).tools).toEqual([{ name: 'f', input_schema: parameters }]);
  });
});
