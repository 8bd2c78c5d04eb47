import { formatUsd, type PicoUsd, ZERO_USD } from './money.ts';

// In the language since ES2026; the compiler's library does not have them yet.
type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown;
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

/** Below it JavaScript prints numbers with an exponent; below the other each is printed with the decimals that it was read from. */
const MIN_PLAIN = 1_000_000n;
const MAX_EXACT = 1_000_000_000_000_000n;
const PICO_USD_PER_USD = 1e12;

/** Money as a bare JSON number in plain decimals: strict clients refuse quotes, exponents and rounding. */
export function toUsdJsonNumber(amount: PicoUsd): object | number {
  if (amount === ZERO_USD) return 0;
  const isPlain = amount >= MIN_PLAIN && amount < MAX_EXACT; // most are, and text takes several times as long
  return isPlain ? Number(amount) / PICO_USD_PER_USD : JSON.rawJSON(formatUsd(amount));
}

/** A decimal as it is, as a bare JSON number. */
export function toJsonNumber(decimal: string): object {
  return JSON.rawJSON(decimal);
}

/**
 * Reads JSON whose numbers are text, as they were written: no digit is lost, and an exponent can be seen.
 * @throws SyntaxError
 */
export function parseJsonWithNumbersAsText(json: string): unknown {
  return JSON.parse(json, reviveNumberAsText);
}

const reviveNumberAsText: Reviver = (_, value, context) => (typeof value === 'number' ? context?.source : value);
