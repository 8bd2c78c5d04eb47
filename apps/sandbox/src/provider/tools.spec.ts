import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { InvalidDirectiveError } from './directive.ts';
import { createArguments, selectTool, type Toolbox } from './tools.ts';

const argumentsOf = (schema: unknown) => JSON.parse(createArguments({ name: 'f', schema }));

describe('arguments', () => {
  test.each<[string, object]>([
    ['nothing', { type: 'object' }],
    ['what is required', { type: 'object', properties: { a: { type: 'string' }, b: {} }, required: ['a'] }],
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
      'what stands elsewhere in the schema',
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

  test('come to an end when a schema has none', () => {
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
    ['the one the directive names', box('auto'), 'g', 'g'],
    ['the first one when any will do', box('auto'), 'any', 'f'],
    ['none when its result is there', box('auto', 1), 'g', undefined],
    ['none when it is offered no more', box('auto', 1), 'h', undefined],
    ['none when nothing is offered', { ...box('auto'), tools: [] }, 'any', undefined],
    ['none when the request wants none', box('none'), 'g', undefined],
    ['the first one when the request requires one', box('required'), undefined, 'f'],
    ['the one the directive names when the request requires one', box('required'), 'g', 'g'],
    ['the one the request names', box({ name: 'g' }), 'f', 'g'],
  ])('that is called is %s', (_, toolbox, wanted, name) => {
    expect(selectTool(toolbox, wanted)?.name).toBe(name);
  });

  test('is called in as many rounds as the directive says', () => {
    const called = [0, 1, 2].map((rounds) => selectTool(box('auto', rounds), 'g', 2)?.name);
    expect(called).toEqual(['g', 'g', undefined]);
  });

  test('must have been offered', () => {
    expect(() => selectTool(box('auto'), 'h')).toThrow(InvalidDirectiveError);
    expect(() => selectTool({ ...box('required'), tools: [] }, 'any')).toThrow(InvalidDirectiveError);
  });
});
