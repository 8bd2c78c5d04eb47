import { describe, expect, test } from '@jest/globals';
import { money } from '#kernel';

describe('money', () => {
  test.each([
    ['1.25', 1_250_000_000_000n],
    [1e-7, 100_000n],
    ['-0.000000000001', -1n],
    [0, 0n],
    ['1e2', 100_000_000_000_000n],
    ['10e-1', 1_000_000_000_000n],
  ])('parses %p USD exactly', (text, pico) => {
    expect(money.parseUsd(text)).toBe(pico);
  });

  test.each(['', 'x', '1.', '1e-13', '0.0000000000001', 'Infinity', '0x10', ' 1'])('rejects %p', (text) => {
    expect(() => money.parseUsd(text)).toThrow(RangeError);
  });

  test('formats an amount of USD as a decimal without an exponent', () => {
    expect(money.formatUsd(money.toPicoUsd(62_508_750n))).toBe('0.00006250875');
    expect(money.formatUsd(money.toPicoUsd(-1n))).toBe('-0.000000000001');
    expect(money.formatUsd(money.toPicoUsd(10_000_000_000_000n))).toBe('10');
  });

  test('formats an amount without decimals as an integer', () => {
    expect([money.formatScaled(1_500n, 0), money.formatScaled(-500n, 0), money.formatScaled(0n, 0)]).toEqual([
      '1500',
      '-500',
      '0',
    ]);
  });

  test('rounds a division up if there is a remainder', () => {
    expect([money.divideRoundingUp(10n, 5n), money.divideRoundingUp(11n, 5n), money.divideRoundingUp(0n, 5n)]).toEqual([
      2n,
      3n,
      0n,
    ]);
  });
});
