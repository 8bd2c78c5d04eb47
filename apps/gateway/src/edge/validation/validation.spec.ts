import { describe, expect, test } from '@jest/globals';
import { IsOptional } from 'class-validator';
import { IsNumberBetween, IsPositiveInteger, validateDto } from './validation.ts';

class Numbers {
  @IsOptional()
  @IsPositiveInteger()
  tokens?: number | null;

  @IsOptional()
  @IsPositiveInteger(128)
  n?: number | null;

  @IsOptional()
  @IsNumberBetween(0, 2)
  heat?: number | null;
}

describe('a number', () => {
  test.each<[object, string]>([
    [{ tokens: '5' }, 'tokens must be an integer'],
    [{ tokens: 0.5 }, 'tokens must be an integer'],
    [{ tokens: -1 }, 'tokens must be at least 1'],
    [{ n: 1.5 }, 'n must be an integer'],
    [{ n: 0 }, 'n must be at least 1'],
    [{ n: 129 }, 'n must be at most 128'],
    [{ heat: 'hot' }, 'heat must be a number'],
    [{ heat: Number.NaN }, 'heat must be a number'],
    [{ heat: -0.1 }, 'heat must be from 0 to 2'],
    [{ heat: 2.1 }, 'heat must be from 0 to 2'],
  ])('of %j is rejected, first for its type and then for its value', (value, message) => {
    expect(() => validateDto(Numbers, value)).toThrow(message);
  });

  test.each([
    {},
    { tokens: null, n: null, heat: null },
    { tokens: 1, n: 128, heat: 2 },
    { tokens: 1e9, n: 1, heat: 0 },
  ])('of %j is accepted', (value) => {
    expect(validateDto(Numbers, value)).toMatchObject(value);
  });
});

describe('a body', () => {
  test('has only the fields that were sent and those of its class', () => {
    expect(Object.keys(validateDto(Numbers, { n: 1, more: 2 })).sort()).toEqual(['heat', 'more', 'n', 'tokens']);
  });

  test('is validated even if it has a field named constructor', () => {
    expect(() => validateDto(Numbers, { n: 0, constructor: Object })).toThrow('n must be at least 1');
    expect(Object.keys(validateDto(Numbers, { n: 1, constructor: 'x' }))).not.toContain('constructor');
  });
});
