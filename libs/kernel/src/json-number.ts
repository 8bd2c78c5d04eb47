import { formatUsd, type PicoUsd, ZERO_USD } from './money.ts';

// Part of ES2026, but not in TypeScript's library yet: https://github.com/tc39/proposal-json-parse-with-source
type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown;
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

/** Pico-USD. Smaller amounts in USD (below 1e-6) are printed with an exponent by JavaScript. */
const MIN_PLAIN = 1_000_000n;
/** Pico-USD. Smaller amounts have at most 15 digits, and the nearest `number` is printed with exactly these digits. */
const MAX_EXACT = 1_000_000_000_000_000n;
const PICO_USD_PER_USD = 1e12;

/**
 * Converts an amount to a value that `JSON.stringify` prints as a plain decimal number of USD. Strict clients reject
 * quotes, exponents and rounding.
 */
export function toUsdJsonNumber(amount: PicoUsd): object | number {
  if (amount === ZERO_USD) return 0;
  const isPlain = amount >= MIN_PLAIN && amount < MAX_EXACT; // most amounts; formatting as text is several times slower
  return isPlain ? Number(amount) / PICO_USD_PER_USD : JSON.rawJSON(formatUsd(amount));
}

/** Converts a decimal to a value that `JSON.stringify` prints as this number, digit for digit. */
export function toJsonNumber(decimal: string): object {
  return JSON.rawJSON(decimal);
}

/**
 * Parses JSON and returns every number as the text in the document: no digit is lost, and an exponent is visible.
 * @throws SyntaxError if the text is not JSON
 */
export function parseJsonWithNumbersAsText(json: string): unknown {
  return JSON.parse(json, reviveNumberAsText);
}

const reviveNumberAsText: Reviver = (_, value, context) => (typeof value === 'number' ? context?.source : value);
