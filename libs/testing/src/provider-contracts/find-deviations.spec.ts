import { expect, test } from '@jest/globals';
import { type ContractSchema, findDeviations } from './find-deviations.ts';

const closed = (properties: Readonly<Record<string, ContractSchema>>, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const TEXT = { type: 'string' };
const definitions = {
  Part: { anyOf: [{ $ref: '#/$defs/Text' }, { $ref: '#/$defs/Image' }] },
  Text: closed({ type: { const: 'text' }, text: TEXT }, ['type', 'text']),
  Image: closed({ type: { const: 'image' }, url: TEXT }, ['type', 'url']),
  Tree: closed({ name: TEXT, children: { type: 'array', items: { $ref: '#/$defs/Tree' } } }, ['name']),
};
const find = (value: unknown, schema: ContractSchema) =>
  findDeviations(value, schema, definitions).map(({ problem, path }) => `${problem} ${path}`);
const parts = closed({ parts: { type: 'array', items: { $ref: '#/$defs/Part' } } });

test.each<[string, unknown, ContractSchema, readonly string[]]>([
  ['a valid value', { parts: [{ type: 'text', text: 'a' }] }, parts, []],
  ['an unknown field', { parts: [{ type: 'text', text: 'a', url: 'b' }] }, parts, ['unknown field parts[].url']],
  ['a missing field', { parts: [{ type: 'image' }] }, parts, ['missing field parts[].url']],
  ['an unknown type of a union', { parts: [{ type: 'audio' }] }, parts, ['invalid value parts[].type']],
  ['a value of another type', { parts: [7] }, parts, ['invalid value parts[]']],
  [
    'recursion',
    { name: 'a', children: [{ name: 'b', age: 1 }] },
    { $ref: '#/$defs/Tree' },
    ['unknown field children[].age'],
  ],
  ['a map', { a: 'b', c: 1 }, { type: 'object', additionalProperties: TEXT }, ['invalid value {}']],
  ['any object', { a: 'b' }, { type: 'object', additionalProperties: {} }, []],
  ['integers', [1, 1.5], { type: 'array', items: { type: ['integer', 'null'] } }, ['invalid value []']],
  ['listed values', 'c', { enum: ['a', 'b'] }, ['invalid value ']],
])('finds the deviations of %s', (_, value, schema, expected) => {
  expect(find(value, schema)).toEqual(expected);
});
