import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatUsd, toPicoUsd, toUsdJsonNumber } from '#kernel';

describe('money as a JSON number', () => {
  test('equals the plain decimal digit for digit for random amounts of up to 10²¹ pico-USD', () => {
    const amounts = fc.oneof(fc.bigInt(-(10n ** 21n), 10n ** 21n), fc.bigInt(-(10n ** 7n), 10n ** 7n));
    fc.assert(
      fc.property(amounts, (amount) => {
        expect(JSON.stringify({ usd: toUsdJsonNumber(toPicoUsd(amount)) })).toBe(
          `{"usd":${formatUsd(toPicoUsd(amount))}}`,
        );
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([0n, 1n, 999_999n, 1_000_000n, 10n ** 15n - 1n, 10n ** 15n, -1n])('is exact for %s pico-USD', (amount) => {
    expect(JSON.stringify(toUsdJsonNumber(toPicoUsd(amount)))).toBe(formatUsd(toPicoUsd(amount)));
  });
});
