import { formatUsd, type PicoUsd, ZERO } from './money.ts';

// In the language since ES2026; the compiler's library does not have them yet.
type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown;
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

const NOTHING = JSON.rawJSON('0');

/** Money as a bare JSON number in plain decimals: strict clients refuse quotes, exponents and rounding. */
export function usdNumber(amount: PicoUsd): object {
  return amount === ZERO ? NOTHING : JSON.rawJSON(formatUsd(amount));
}

/** A decimal as it is, as a bare JSON number. */
export function plainNumber(decimal: string): object {
  return JSON.rawJSON(decimal);
}

/**
 * Reads JSON whose numbers are text, as they were written: no digit is lost, and an exponent can be seen.
 * @throws SyntaxError
 */
export function withNumbersAsText(json: string): unknown {
  return JSON.parse(json, asWritten);
}

const asWritten: Reviver = (_, value, context) => (typeof value === 'number' ? context?.source : value);
