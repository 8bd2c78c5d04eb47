import { describe, expect, test } from '@jest/globals';
import { ValidateBy, type ValidationArguments, validateSync } from 'class-validator';
import fc from 'fast-check';
import { NewKey } from '../../accounts/keys.requests.ts';
import { ChatRequest } from '../../inference/chat.requests.ts';
import { EmbeddingRequest } from '../../inference/embeddings.requests.ts';
import { MessageRequest } from '../../inference/messages.requests.ts';
import { ResponsesInput } from '../../inference/responses.requests.ts';
import { createRequestSchema } from '../../openapi/request-schema.ts';
import { NewTopup } from '../../topups/topups.requests.ts';
import { createFastValidator } from './fast-validator.ts';

const VALUES = fc.oneof(
  fc.constantFrom(undefined, null, '', 'text', 'float', 'USD', 'auto', true, false, [], {}, ['a'], Number.NaN),
  fc.integer({ min: -2, max: 200 }),
  fc.double(),
  fc.string(),
);

describe.each([ChatRequest, MessageRequest, ResponsesInput, EmbeddingRequest, NewKey, NewTopup])('%p', (type) => {
  const names = Object.keys(createRequestSchema(type).properties as object);

  test('accepts exactly the objects that class-validator accepts', () => {
    const look = createFastValidator(type);
    fc.assert(
      fc.property(fc.record(Object.fromEntries(names.map((name) => [name, VALUES]))), (fields) => {
        const object = Object.assign(new type(), fields);
        expect(look?.(object)).toBe(validateSync(object).length === 0);
      }),
    );
  });

  test('agrees with class-validator on an object with one changed field', () => {
    const look = createFastValidator(type);
    const valid = { model: 'a/b', messages: [], input: 'a', max_tokens: 1, amount: 1, currency: 'USD', name: 'a' };
    for (const name of names)
      for (const value of fc.sample(VALUES, 50)) {
        const object = Object.assign(new type(), valid, { [name]: value });
        expect([name, value, look?.(object)]).toEqual([name, value, validateSync(object).length === 0]);
      }
  });
});

test('retains no object after it has been validated', () => {
  const seen: ValidationArguments[] = [];
  const validate = (_: unknown, validationArguments?: ValidationArguments) =>
    seen.push(validationArguments as never) > 0;
  class Note {
    @ValidateBy({ name: 'recorded', validator: { validate } })
    declare readonly text: string;
  }
  const validateFast = createFastValidator(Note);
  const notes = ['first', 'second'].map((text) => Object.assign(new Note(), { text }));
  for (const note of notes) expect(validateFast?.(note)).toBe(true);
  expect(seen.map(({ object }) => object)).toEqual(notes);
  expect(seen[0]).not.toBe(seen[1]);
});
