import { expect, test } from '@jest/globals';
import { readTextFields, type TextField } from './text-fields.ts';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    count: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    diarize: { type: 'boolean' },
    words: { type: 'array', items: { type: 'string' } },
    level: { enum: [1, 2] },
  },
  required: ['name'],
  additionalProperties: false,
};

test.each<[string, readonly TextField[], object]>([
  ['texts', [['name', '7']], { name: '7' }],
  [
    'numbers',
    [
      ['count', '-7.50'],
      ['level', '2'],
    ],
    { count: -7.5, level: 2 },
  ],
  ['booleans', [['diarize', 'false']], { diarize: false }],
  ['arrays of one and of more', [['words', 'a']], { words: ['a'] }],
  [
    'repeated fields',
    [
      ['words', 'a'],
      ['words', 'b'],
    ],
    { words: ['a', 'b'] },
  ],
  ['names with brackets', [['words[]', 'a']], { words: ['a'] }],
  [
    'invalid values as texts',
    [
      ['count', 'many'],
      ['diarize', 'yes'],
    ],
    { count: 'many', diarize: 'yes' },
  ],
  ['unknown fields as texts', [['colour', '7']], { colour: '7' }],
])('reads %s', (_, fields, expected) => {
  expect(readTextFields(fields, schema, {})).toEqual(expected);
});
