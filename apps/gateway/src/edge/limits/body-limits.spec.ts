import { describe, expect, test } from '@jest/globals';
import { BadRequestError } from '../errors/errors.ts';
import { assertBodyWithinLimits, assertShortParameters } from './body-limits.ts';

const long = 'x'.repeat(24_000_000);

/** Returns an array with this many levels of arrays inside. */
const nested = (levels: number): unknown => (levels === 0 ? [] : [nested(levels - 1)]);

const refused = (body: unknown) => {
  try {
    assertBodyWithinLimits(body);
    return undefined;
  } catch (error) {
    if (error instanceof BadRequestError) return error.param ?? error.message;
    throw error;
  }
};

test('limits a tool call id, which may contain the signature of reasoning, to 32,768 characters', () => {
  const id = 'x'.repeat(32_768);
  const call = (of: string) => ({ messages: [{ role: 'assistant', tool_calls: [{ id: of }] }] });
  expect([refused(call(id)), refused(call(`${id}x`))]).toEqual([undefined, 'id']);
});

test('accepts long texts in the arguments of a tool call, even in a field called name', () => {
  const use = { type: 'tool_use', id: 'a', name: 'write', input: { name: long, old_string: long } };
  expect(refused({ messages: [{ role: 'assistant', content: [use] }] })).toBe(undefined);
  expect(refused({ input: [{ name: long }] })).toBe('name');
});

describe('the length is limited for', () => {
  test.each<[string, unknown, string]>([
    ['the name of a model', { model: long }, 'model'],
    ['the name of a model with a suffix', { model: `openai/gpt-5-mini:${long}` }, 'model'],
    ['the id of a model that is an object', { model: { id: long } }, 'id'],
    ['a role', { messages: [{ role: long, content: 'Hello' }] }, 'role'],
    ['the type of a part', { messages: [{ role: 'user', content: [{ type: long }] }] }, 'type'],
    ['the id of a call', { messages: [{ role: 'tool', tool_call_id: long, content: '' }] }, 'tool_call_id'],
    ['the name of a tool', { tools: [{ type: 'function', function: { name: long } }] }, 'name'],
    ['the name of a chosen tool', { tool_choice: { type: 'function', name: long } }, 'name'],
    ['a tag', { metadata: { tag: long } }, 'tag'],
    ['a provider', { provider: { order: [long] } }, 'order'],
    ['the id of the previous response', { previous_response_id: long }, 'previous_response_id'],
    ['an unknown field', { mystery: { inside: [long] } }, 'inside'],
  ])('%s', (_, body, param) => expect(refused(body)).toBe(param));

  test('the name of a field', () => {
    expect(refused({ metadata: { [long]: 'x' } })).toContain('Names of fields');
  });

  test('a parameter of the URL', () => {
    expect(() => assertShortParameters(long, 'id')).toThrow(BadRequestError);
    expect(() => assertShortParameters({ model: ['gpt', long] }, '')).toThrow(BadRequestError);
    expect(() => assertShortParameters({ model: 'gpt', page: undefined }, '')).not.toThrow();
  });
});

test.each<[string, unknown]>([
  ['a message', { messages: [{ role: 'user', content: long }] }],
  ['a part of a message', { messages: [{ role: 'user', content: [{ type: 'text', text: long }] }] }],
  ['an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: long } }] }] }],
  ['a file', { input: [{ role: 'user', content: [{ type: 'input_file', file_data: long }] }] }],
  ['instructions', { instructions: long, input: long }],
  ['texts to embed', { input: [long, 'x'] }],
  ['the arguments of a call', { messages: [{ role: 'assistant', tool_calls: [{ function: { arguments: long } }] }] }],
  ['the result of a call', { input: [{ type: 'function_call_output', call_id: 'x', output: long }] }],
  ['encrypted reasoning', { input: [{ type: 'reasoning', encrypted_content: long }] }],
  [
    'a JSON Schema',
    { tools: [{ type: 'function', function: { name: 'x', parameters: { properties: { id: { const: long } } } } }] },
  ],
  ['300,000 tokens to embed', { input: Array.from({ length: 300 }, () => Array(1_000).fill(7)) }],
])('accepts long content: %s', (_, body) => expect(refused(body)).toBeUndefined());

test('limits the depth, the array elements and the fields of a body', () => {
  expect(refused({ messages: nested(60) })).toBeUndefined();
  expect(refused({ messages: nested(64) })).toContain('nested deeper');
  expect(refused(JSON.parse('['.repeat(1_000_000) + ']'.repeat(1_000_000)))).toContain('nested deeper');
  expect(refused({ input: Array(500_000).fill(1) })).toBeUndefined();
  expect(refused({ input: Array(500_001).fill(1) })).toContain('elements');
  expect(refused({ messages: Array(50_000).fill({ role: 'user', content: '' }) })).toContain('fields');
});
