/** Parsers for values that a provider reports with its response. They return undefined for implausible values. */

/**
 * Ids of providers have some dozens of characters. Values that do not match are dropped, because ids are stored
 * permanently.
 */
const PROVIDER_REQUEST_ID = /^[\w.:/+=@~-]{1,200}$/;

/** Parses the provider's id of a response, which identifies the response on the provider's invoice. */
export function parseProviderRequestId(response: unknown): string | undefined {
  const id = (response as { readonly id?: unknown } | null | undefined)?.id;
  return typeof id === 'string' && PROVIDER_REQUEST_ID.test(id) ? id : undefined;
}

/** Maximum number of tokens, characters or milliseconds: several times what any model reads or writes in one call. */
const MAX_COUNT = 100_000_000;

/**
 * Parses a token count from 0 to `MAX_COUNT`, else returns undefined. A provider's miscount must neither use up the
 * customer's hold nor count as a cost that the operator absorbed for that customer.
 */
export function parseTokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_COUNT
    ? (value as number)
    : undefined;
}

/** Maximum number of web searches: many times what any model makes in one call. */
export const MAX_SEARCHES = 1_000;

/** Parses a number of invoiced web searches from 0 to `MAX_SEARCHES`, else returns undefined, as `parseTokenCount` does. */
export function parseSearchCount(value: unknown): number | undefined {
  const count = parseTokenCount(value);
  return count !== undefined && count <= MAX_SEARCHES ? count : undefined;
}

/** Parses a count in a response header. */
export function parseHeaderCount(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d+$/.test(value) ? parseTokenCount(Number(value)) : undefined;
}

/** Parses a duration or an offset in seconds. */
export function parseSeconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/**
 * Converts a duration in seconds to milliseconds, rounded up. A rest below 0.0005 ms is dropped, because it may be an
 * error of floating-point arithmetic.
 * @returns undefined if the duration is not plausible
 */
export function parseMilliseconds(seconds: unknown): number | undefined {
  const validSeconds = parseSeconds(seconds);
  return validSeconds === undefined ? undefined : parseTokenCount(Math.ceil(Number((validSeconds * 1_000).toFixed(3))));
}

export function parseNonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
