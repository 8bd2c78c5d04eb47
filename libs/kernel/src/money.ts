/**
 * Money is a whole number of pico-USD (10⁻¹² USD), so that a price per token is exact and no sum ever drifts.
 * `number` never holds money: it is turned into pico-USD at the edge and back only when it is printed.
 */
declare const unit: unique symbol;

/** An amount in pico-USD: 1 USD = 10¹² pico-USD. */
export type PicoUsd = bigint & { readonly [unit]: 'pico-USD' };

/** How many decimals of a USD a pico-USD stands for. */
const USD_DECIMALS = 12;

export const ZERO_USD = 0n as PicoUsd;

/** Takes a whole number that is already in pico-USD. */
export function toPicoUsd(amount: bigint): PicoUsd {
  return amount as PicoUsd;
}

/**
 * Reads a USD amount exactly: `"1.25"`, `1.25` or `1e-7`.
 * @throws RangeError when it is not a finite decimal, or is finer than a pico-USD
 */
export function parseUsd(amount: string | number): PicoUsd {
  return toPicoUsd(parseScaled(amount, USD_DECIMALS));
}

/** Reads a binary number as the USD amount that is meant by it, to the nearest pico-USD: 0.1 + 0.2 is 0.3. */
export function roundToPicoUsd(amount: number): PicoUsd {
  return parseUsd(amount.toFixed(USD_DECIMALS));
}

/** Reads a decimal as a whole number of its 10⁻ᵈ parts, exactly. Throws RangeError when it is finer than that. */
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

/** Prints an amount as a plain decimal number of USD, never in exponent form: `"0.0000625"`. */
export function formatUsd(amount: PicoUsd): string {
  return formatScaled(amount, USD_DECIMALS);
}

/** Prints a whole number of 10⁻ᵈ parts as a plain decimal. */
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

export function max(...amounts: readonly PicoUsd[]): PicoUsd {
  return amounts.reduce((high, amount) => (amount > high ? amount : high), ZERO_USD);
}

export function sum(amounts: Iterable<PicoUsd>): PicoUsd {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total as PicoUsd;
}

/** Divides and rounds up: a charge is rounded once, at the end, to the next pico-USD. The divisor is positive. */
export function divideRoundingUp(amount: bigint, by: bigint): bigint {
  const quotient = amount / by;
  return amount % by > 0n ? quotient + 1n : quotient;
}

/** How an amount stands in an event: a decimal string of pico-USD, since JSON numbers are not exact. */
export function toJsonAmount(amount: PicoUsd): string {
  return amount.toString();
}

export function parseJsonAmount(amount: string): PicoUsd {
  return BigInt(amount) as PicoUsd;
}
