/** Values that an upstream reports of its answer, as far as they can be believed. */

/** Vendors' ids are some dozens of characters long; what is longer is not an id, and would be stored forever. */
const LONGEST_ID = 200;

/** What a vendor calls its answer, by which a line of its invoice can be found. */
export function vendorIdIn(answer: unknown): string | undefined {
  const id = (answer as { readonly id?: unknown } | null | undefined)?.id;
  return typeof id === 'string' && id !== '' && id.length <= LONGEST_ID ? id : undefined;
}

/** A number of tokens; undefined when it is none. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
