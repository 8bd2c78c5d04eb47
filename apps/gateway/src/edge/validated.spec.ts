import { describe, expect, test } from '@jest/globals';
import { IsOptional } from 'class-validator';
import { Count, Fraction, valid } from './validated.ts';

class Numbers {
  @IsOptional()
  @Count()
  tokens?: number | null;

  @IsOptional()
  @Count(128)
  n?: number | null;

  @IsOptional()
  @Fraction(0, 2)
  heat?: number | null;
}

describe('a number', () => {
  test.each<[object, string]>([
    [{ tokens: '5' }, 'tokens must be a whole number'],
    [{ tokens: 0.5 }, 'tokens must be a whole number'],
    [{ tokens: -1 }, 'tokens must be at least 1'],
    [{ n: 1.5 }, 'n must be a whole number'],
    [{ n: 0 }, 'n must be at least 1'],
    [{ n: 129 }, 'n must be at most 128'],
    [{ heat: 'hot' }, 'heat must be a number'],
    [{ heat: Number.NaN }, 'heat must be a number'],
    [{ heat: -0.1 }, 'heat must be from 0 to 2'],
    [{ heat: 2.1 }, 'heat must be from 0 to 2'],
  ])('of %j is refused: first for what it is, then for how large', (value, message) => {
    expect(() => valid(Numbers, value)).toThrow(message);
  });

  test.each([
    {},
    { tokens: null, n: null, heat: null },
    { tokens: 1, n: 128, heat: 2 },
    { tokens: 1e9, n: 1, heat: 0 },
  ])('of %j is taken', (value) => {
    expect(valid(Numbers, value)).toMatchObject(value);
  });
});
