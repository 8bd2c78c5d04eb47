import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { affordableOutput, dearest, NO_USAGE, priceOf, type Rates } from '#domain';
import { formatUsd, type PicoUsd, usd } from '#kernel';

const rates = (input: string, output: string, more: Partial<Rates> = {}): Rates => ({
  input: usd(input),
  cacheRead: usd(input),
  cacheWrite: usd(input),
  output: usd(output),
  reasoning: usd(output),
  request: 0n,
  marginBasisPoints: 10_000n,
  ...more,
});

describe('a price', () => {
  test('is exact to the last decimal', () => {
    const { price } = priceOf({ ...NO_USAGE, input: 74, output: 3 }, rates('0.79125', '1.31875'));
    expect(formatUsd(price)).toBe('0.00006250875');
  });

  test('has every class of tokens at its own rate', () => {
    const each = rates('1', '2', { cacheRead: usd('0.1'), cacheWrite: usd('1.25'), reasoning: usd('4') });
    const usage = {
      input: 1_000_000,
      cacheRead: 1_000_000,
      cacheWrite: 1_000_000,
      output: 1_000_000,
      reasoning: 1_000_000,
    };
    expect(formatUsd(priceOf(usage, each).price)).toBe('8.35');
  });

  test('adds the margin to the cost and is rounded once, up', () => {
    const { cost, price } = priceOf(
      { ...NO_USAGE, input: 1 },
      { ...rates('0', '0'), input: 1n, marginBasisPoints: 10_550n },
    );
    expect([cost, price]).toEqual([1n, 1n]);
    const more = priceOf({ ...NO_USAGE, input: 3 }, rates('3', '15', { marginBasisPoints: 10_550n }));
    expect([formatUsd(more.cost), formatUsd(more.price)]).toEqual(['0.000009', '0.000009495']);
  });

  test('of a request that has one of its own does not depend on tokens', () => {
    const flat = rates('0', '0', { request: usd('0.01') });
    expect(formatUsd(priceOf({ ...NO_USAGE, input: 10_000 }, flat).price)).toBe('0.01');
    expect(dearest(5, 5, flat)).toBe(usd('0.01'));
  });

  const any = fc.record({
    input: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    cacheRead: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    cacheWrite: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    output: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    reasoning: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    request: fc.bigInt({ min: 0n, max: 10n ** 12n }),
    marginBasisPoints: fc.bigInt({ min: 10_000n, max: 20_000n }),
  });
  const tokens = fc.nat({ max: 200_000 });

  test('is never above the dearest that was quoted for as many tokens', () => {
    fc.assert(
      fc.property(any, tokens, tokens, fc.double({ min: 0, max: 1, noNaN: true }), (each, input, output, share) => {
        const cached = Math.floor(input * share);
        const reasoned = Math.floor(output * share);
        const usage = {
          input: input - cached,
          cacheRead: cached,
          cacheWrite: 0,
          output: output - reasoned,
          reasoning: reasoned,
        };
        expect(priceOf(usage, each).price <= dearest(input, output, each)).toBe(true);
      }),
    );
  });

  test('of what an amount affords is not above that amount, and of a token more it is', () => {
    fc.assert(
      fc.property(any, tokens, fc.bigInt({ min: 0n, max: 10n ** 16n }), (each, input, amount) => {
        const output = affordableOutput(amount as PicoUsd, input, each);
        if (output < 0) expect(dearest(input, 0, each) > amount).toBe(true);
        else if (output < Number.MAX_SAFE_INTEGER) {
          expect(dearest(input, output, each) <= amount).toBe(true);
          expect(dearest(input, output + 1, each) > amount).toBe(true);
        }
      }),
    );
  });
});
