import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { allowAny, allowByType, allowEach, allowFields, allowValues } from './field-filter.ts';

const parts = allowEach(allowByType('Content parts', { text: allowFields({ type: allowAny, text: allowAny }) }));
const request = allowFields({ model: allowAny, messages: allowEach(allowFields({ role: allowAny, content: parts })) });

const refusalOf = (value: unknown, rule = request) => {
  try {
    rule(value, '');
  } catch (error) {
    expect(error).toBeInstanceOf(UpstreamError);
    const { code, message, param } = error as UpstreamError;
    return { code, message, param };
  }
  throw new Error('the value was not rejected');
};

describe('a field filter', () => {
  test('returns the same object if all of its fields are listed', () => {
    const asked = { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] };
    expect(request(asked, '')).toBe(asked);
    const spoken = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
    expect(request(spoken, '')).toBe(spoken);
  });

  test('drops fields that are not listed, at any depth, without changing the request', () => {
    const asked = {
      model: 'm',
      service_tier: 'priority',
      messages: [{ role: 'user', weight: 1, content: [{ type: 'text', text: 'Hi', ttl: '1h' }] }],
    };
    const before = structuredClone(asked);
    expect(request(asked, '')).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    });
    expect(asked).toEqual(before);
  });

  test('drops an object in the position of an array and an array in that of an object, but sends a scalar', () => {
    expect(request({ model: 'm', messages: { 0: { role: 'user' } } }, '')).toEqual({ model: 'm' });
    expect(request({ messages: [[{ role: 'user' }], { role: 'user', content: { type: 'mcp' } }] }, '')).toEqual({
      messages: [{ role: 'user' }],
    });
    expect(request({ messages: 'Hi' }, '')).toEqual({ messages: 'Hi' });
  });

  test('treats names that every object inherits as names that are not listed', () => {
    const sent = JSON.parse('{"model": "m", "__proto__": {"tools": []}, "constructor": 1}');
    expect(JSON.stringify(request(sent, ''))).toBe('{"model":"m"}');
    const content = [{ type: 'constructor' }];
    expect(refusalOf({ messages: [{ content }] }).message).toBe(
      'Content parts of the type "constructor" are not supported',
    );
  });
});

describe('a value that must not be dropped silently', () => {
  test('is rejected with its type and its path', () => {
    const content = [{ type: 'text', text: 'Hi' }, { type: 'holo' }];
    expect(refusalOf({ messages: [{ content: 'a' }, { content }] })).toEqual({
      code: 'invalid_request',
      message: 'Content parts of the type "holo" are not supported',
      param: 'messages[1].content[1].type',
    });
  });

  test.each<[unknown, string]>([
    [{ holo: {} }, 'holo'],
    [{}, 'null'],
    [{ type: 7 }, '7'],
    [[], 'null'],
  ])('is rejected if it is %j, with the type %s', (part, name) => {
    expect(refusalOf([part], parts).message).toBe(`Content parts of the type "${name}" are not supported`);
  });

  test('is sent if it is a scalar, which the provider validates', () => {
    expect(parts([1, null, 'Hi'], 'content')).toEqual([1, null, 'Hi']);
  });

  test('is rejected if it is not one of the listed values', () => {
    const words = allowValues('Outputs', ['text']);
    expect(words(['text'], 'modalities')).toEqual(['text']);
    expect(refusalOf(['text', 'audio'], words).message).toBe('Outputs of the type "audio" are not supported');
  });
});
