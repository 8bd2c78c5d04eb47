import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { InvalidDirectiveError } from './directive.ts';
import { createArguments, selectTool, type Toolbox } from './tools.ts';

const argumentsOf = (schema: unknown) => JSON.parse(createArguments({ name: 'f', schema }));

describe('arguments', () => {
  test.each<[string, object]>([
    ['no properties', { type: 'object' }],
    ['required properties', { type: 'object', properties: { a: { type: 'string' }, b: {} }, required: ['a'] }],
    ['one of a list', { enum: ['x', 'y'] }],
    ['one value', { const: 7 }],
    ['a number within bounds', { type: 'number', exclusiveMinimum: 3, maximum: 5 }],
    ['a number below zero', { type: 'integer', maximum: -2 }],
    ['a long text', { type: 'string', minLength: 9 }],
    ['a short text', { type: 'string', maxLength: 2 }],
    ['a list', { type: 'array', minItems: 2, items: { type: 'boolean' } }],
    ['one of several types', { type: ['null', 'string'] }],
    ['one of several schemas', { anyOf: [{ type: 'integer' }, { type: 'string' }] }],
    [
      'all of several schemas',
      {
        allOf: [
          { type: 'object', properties: { a: { type: 'null' } }, required: ['a'] },
          { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
        ],
      },
    ],
    [
      'a reference within the schema',
      {
        type: 'object',
        properties: { list: { type: 'array', minItems: 1, items: { $ref: '#/$defs/item' } } },
        required: ['list'],
        $defs: { item: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } },
      },
    ],
  ])('conform to a schema of %s', (_, schema) => {
    expect(new Ajv2020({ allowUnionTypes: true }).validate(schema, argumentsOf(schema))).toBe(true);
  });

  test('are finite for a schema that requires itself', () => {
    const endless = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
    expect(argumentsOf(endless)).toBeDefined();
  });
});

describe('the tool', () => {
  const [f, g] = ['f', 'g'].map((name) => ({ name, schema: {} }));
  const box = (choice: Toolbox['choice'], rounds = 0): Toolbox => ({
    tools: [f, g].filter((tool) => tool !== undefined),
    choice,
    allowsParallelCalls: true,
    rounds,
  });

  test.each<[string, Toolbox, string | undefined, string | undefined]>([
    ['none unless requested', box('auto'), undefined, undefined],
    ['the one that the directive names', box('auto'), 'g', 'g'],
    ['the first one for the directive "any"', box('auto'), 'any', 'f'],
    ['none once the result is in the conversation', box('auto', 1), 'g', undefined],
    ['none if a later round does not offer the tool of the directive', box('auto', 1), 'h', undefined],
    ['none if the request offers no tools', { ...box('auto'), tools: [] }, 'any', undefined],
    ['none if the request forbids tools', box('none'), 'g', undefined],
    ['the first one if the request requires a tool', box('required'), undefined, 'f'],
    ['the one that the directive names if the request requires a tool', box('required'), 'g', 'g'],
    ['the one that the request names', box({ name: 'g' }), 'f', 'g'],
  ])('that is called is %s', (_, toolbox, wanted, name) => {
    expect(selectTool(toolbox, wanted)?.name).toBe(name);
  });

  test('is called in as many rounds as the directive specifies', () => {
    const called = [0, 1, 2].map((rounds) => selectTool(box('auto', rounds), 'g', 2)?.name);
    expect(called).toEqual(['g', 'g', undefined]);
  });

  test('must be offered by the request', () => {
    expect(() => selectTool(box('auto'), 'h')).toThrow(InvalidDirectiveError);
    expect(() => selectTool({ ...box('required'), tools: [] }, 'any')).toThrow(InvalidDirectiveError);
  });
});
