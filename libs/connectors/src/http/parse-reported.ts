/** Values that an upstream reports of its answer, as far as they can be believed. */

/** Vendors' ids are some dozens of characters without a space; anything else is not an id, and would be stored forever. */
const PROVIDER_REQUEST_ID = /^[\w.:/+=@~-]{1,200}$/;

/** What a vendor calls its answer, by which a line of its invoice can be found. */
export function parseProviderRequestId(response: unknown): string | undefined {
  const id = (response as { readonly id?: unknown } | null | undefined)?.id;
  return typeof id === 'string' && PROVIDER_REQUEST_ID.test(id) ? id : undefined;
}

/** Of tokens, characters or milliseconds: several times what any model reads or writes in one call. */
const MAX_COUNT = 100_000_000;

/**
 * A number of tokens; undefined when it is none, or more than there can be: what a vendor has miscounted takes neither all that is
 * held from its customer, nor counts as a loss that he caused.
 */
export function parseTokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_COUNT
    ? (value as number)
    : undefined;
}

/** A number in a header of the answer. */
export function parseHeaderCount(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d+$/.test(value) ? parseTokenCount(Number(value)) : undefined;
}

/** Seconds from the beginning of something. */
export function parseSeconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** A length in seconds as milliseconds, rounded up: undefined where it can be none. */
export function parseMilliseconds(seconds: unknown): number | undefined {
  const validSeconds = parseSeconds(seconds);
  return validSeconds === undefined ? undefined : parseTokenCount(Math.ceil(Number((validSeconds * 1_000).toFixed(3))));
}

export function parseNonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
