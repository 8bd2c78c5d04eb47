import { formatUsd, type PicoUsd } from './money.ts';

// In the language since ES2026; the compiler's library does not have it yet.
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

/** Money as a bare JSON number in plain decimals: strict clients refuse quotes, exponents and rounding. */
export function usdNumber(amount: PicoUsd): object {
  return JSON.rawJSON(formatUsd(amount));
}

/** A decimal as it is, as a bare JSON number. */
export function plainNumber(decimal: string): object {
  return JSON.rawJSON(decimal);
}
