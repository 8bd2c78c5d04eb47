/** Parses JSON of payment backends, including integers above the safe range: amounts in the smallest unit of a coin. */

/** A reviver with source text access (ES2026), which TypeScript's library does not declare yet. */
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** Longer integers are not amounts, and parsing them takes long. */
const MAX_DIGITS = 20;

/**
 * Parses JSON, with unsafe integers of at most `MAX_DIGITS` characters as bigints. All other values are parsed as
 * usual.
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  const reviver: Reviver = (_, value, { source = '' }) => {
    const isInexact = typeof value === 'number' && !Number.isSafeInteger(value);
    return isInexact && source.length <= MAX_DIGITS && /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
  return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1]);
}

/**
 * Parses the JSON of a payment backend.
 * @returns undefined for invalid JSON; the parser's error is dropped because its message quotes the input
 */
export function parseBackendJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // invalid JSON
  }
}

/**
 * Converts an integer from `parseExactJson`.
 * @returns undefined if the value is not an integer, is negative, or has more than `MAX_DIGITS` digits
 */
export function parseUnits(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value >= 0n ? value : undefined;
  return Number.isSafeInteger(value) && Number(value) >= 0 ? BigInt(value as number) : undefined;
}

/** Converts Unix seconds to ISO 8601. @returns undefined if the value is not a plausible number of seconds */
export function unixSecondsToInstant(seconds: unknown): string | undefined {
  const valid = Number.isSafeInteger(seconds) && Number(seconds) > 0 && Number(seconds) < 1e11;
  return valid ? new Date(Number(seconds) * 1000).toISOString() : undefined;
}
