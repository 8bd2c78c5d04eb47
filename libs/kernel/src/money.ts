/**
 * Money is an integer number of pico-USD (10⁻¹² USD), so that a price per token is exact and sums never drift. A
 * `number` never holds money: input is converted to pico-USD at the edge, and converted back only for output.
 */
declare const unit: unique symbol;

/** An amount in pico-USD: 1 USD = 10¹² pico-USD. */
export type PicoUsd = bigint & { readonly [unit]: 'pico-USD' };

const USD_DECIMALS = 12;

export const ZERO_USD = 0n as PicoUsd;

/** Marks an integer that is already in pico-USD as money. */
export function toPicoUsd(amount: bigint): PicoUsd {
  return amount as PicoUsd;
}

/**
 * Parses a USD amount exactly: `"1.25"`, `1.25` or `1e-7`.
 * @throws RangeError if the amount is not a finite decimal, or has a fraction of a pico-USD
 */
export function parseUsd(amount: string | number): PicoUsd {
  return toPicoUsd(parseScaled(amount, USD_DECIMALS));
}

/** Rounds a USD amount to the nearest pico-USD, which removes the error of binary arithmetic: 0.1 + 0.2 is 0.3. */
export function roundToPicoUsd(amount: number): PicoUsd {
  return parseUsd(amount.toFixed(USD_DECIMALS));
}

/**
 * Parses a decimal exactly as an integer number of 10⁻ᵈ units, where d is `decimals`.
 * @throws RangeError if the amount is not a finite decimal, or has a fraction of such a unit
 */
export function parseScaled(amount: string | number, decimals: number): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i.exec(String(amount));
  if (!match) throw new RangeError(`not a decimal amount: ${amount}`);
  const [, sign, integer = '', fraction = '', exponent = '0'] = match;
  const digits = integer + fraction;
  const shift = decimals + Number(exponent) - fraction.length;
  if (shift >= 0) return BigInt(`${sign}${digits}`) * 10n ** BigInt(shift);
  const dropped = digits.slice(shift);
  if (/[^0]/.test(dropped)) throw new RangeError(`${amount} has more than ${decimals} decimals`);
  return BigInt(`${sign}${digits.slice(0, shift) || '0'}`);
}

/** Formats an amount as a plain decimal number of USD, never with an exponent: `"0.0000625"`. */
export function formatUsd(amount: PicoUsd): string {
  return formatScaled(amount, USD_DECIMALS);
}

/** Formats an integer number of 10⁻ᵈ units as a plain decimal, where d is `decimals`. */
export function formatScaled(amount: bigint, decimals: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0');
  const point = digits.length - decimals;
  const fraction = digits.slice(point).replace(/0+$/, '');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, point)}${fraction ? `.${fraction}` : ''}`;
}

export function add(a: PicoUsd, b: PicoUsd): PicoUsd {
  return (a + b) as PicoUsd;
}

export function subtract(a: PicoUsd, b: PicoUsd): PicoUsd {
  return (a - b) as PicoUsd;
}

export function negate(a: PicoUsd): PicoUsd {
  return -a as PicoUsd;
}

export function min(first: PicoUsd, ...rest: readonly PicoUsd[]): PicoUsd {
  return rest.reduce((low, amount) => (amount < low ? amount : low), first);
}

/** Returns the largest amount, but at least 0. */
export function max(...amounts: readonly PicoUsd[]): PicoUsd {
  return amounts.reduce((high, amount) => (amount > high ? amount : high), ZERO_USD);
}

export function sum(amounts: Iterable<PicoUsd>): PicoUsd {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total as PicoUsd;
}

/** Divides by a positive number and rounds up. A charge is rounded once, at the end, to the next pico-USD. */
export function divideRoundingUp(amount: bigint, by: bigint): bigint {
  const quotient = amount / by;
  return amount % by > 0n ? quotient + 1n : quotient;
}

/** Converts an amount to its form in events: a decimal string of pico-USD, because JSON numbers are not exact. */
export function toJsonAmount(amount: PicoUsd): string {
  return amount.toString();
}

export function parseJsonAmount(amount: string): PicoUsd {
  return BigInt(amount) as PicoUsd;
}
