/** Vendors' ids are some dozens of characters long; what is longer is not an id, and would be stored forever. */
const LONGEST = 200;

/** What a vendor calls its answer, by which a line of its invoice can be found. */
export function vendorIdIn(answer: unknown): string | undefined {
  const id = (answer as { readonly id?: unknown } | null | undefined)?.id;
  return typeof id === 'string' && id !== '' && id.length <= LONGEST ? id : undefined;
}
