/** JSON as back ends send it, also with whole numbers that a JavaScript number cannot hold: amounts in the smallest unit of a coin. */

/** In the language since ES2026; the compiler's library does not have it yet. */
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** What is longer is no amount of anything, and takes long to read. */
const MAX_DIGITS = 20;

/**
 * Whole numbers that are not safe become bigints, all others stay what they are.
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  const reviver: Reviver = (_, value, { source = '' }) => {
    const isInexact = typeof value === 'number' && !Number.isSafeInteger(value);
    return isInexact && source.length <= MAX_DIGITS && /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
  return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1]);
}

/** What a back end sent; undefined when it is no JSON. The words of a parser are not passed on: they repeat what was sent. */
export function parseBackendJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A whole number that `parseExactJson` has read. @returns undefined when the value is none, or is below zero */
export function parseUnits(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value >= 0n ? value : undefined;
  return Number.isSafeInteger(value) && Number(value) >= 0 ? BigInt(value as number) : undefined;
}

/** A moment as ISO 8601. @returns undefined when the value is no number of seconds */
export function unixSecondsToInstant(seconds: unknown): string | undefined {
  const valid = Number.isSafeInteger(seconds) && Number(seconds) > 0 && Number(seconds) < 1e11;
  return valid ? new Date(Number(seconds) * 1000).toISOString() : undefined;
}
