import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatUsd, picoUsd, toUsdJsonNumber } from '#kernel';

describe('money as a JSON number', () => {
  test('is its plain decimal, digit for digit, however small or large it is', () => {
    const amounts = fc.oneof(fc.bigInt(-(10n ** 21n), 10n ** 21n), fc.bigInt(-(10n ** 7n), 10n ** 7n));
    fc.assert(
      fc.property(amounts, (amount) => {
        expect(JSON.stringify({ usd: toUsdJsonNumber(picoUsd(amount)) })).toBe(`{"usd":${formatUsd(picoUsd(amount))}}`);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([0n, 1n, 999_999n, 1_000_000n, 10n ** 15n - 1n, 10n ** 15n, -1n])('%s pico-USD', (amount) => {
    expect(JSON.stringify(toUsdJsonNumber(picoUsd(amount)))).toBe(formatUsd(picoUsd(amount)));
  });
});
