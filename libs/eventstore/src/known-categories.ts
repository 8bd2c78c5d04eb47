/**
 * Prevents appends to streams of other categories. With EventStoreDB, readers of the log receive only the listed
 * categories, so no read model, workflow or audit would ever receive such events.
 * @throws RangeError if the stream has none of the prefixes
 */
export function assertKnownCategory(stream: string, prefixes: readonly string[]): void {
  if (!isKnownCategory(stream, prefixes)) throw new RangeError(`${stream} does not belong to a known category`);
}

export function isKnownCategory(stream: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => stream.startsWith(prefix));
}
