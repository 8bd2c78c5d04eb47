/**
 * Readers of the whole log see the streams of the listed categories and no others, so nothing is appended to another one:
 * it would be stored, and no read model, saga or audit would ever see it.
 * @throws RangeError
 */
export function assertKnownCategory(stream: string, prefixes: readonly string[]): void {
  if (!isKnownCategory(stream, prefixes)) throw new RangeError(`${stream} is of no category that is followed`);
}

export function isKnownCategory(stream: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => stream.startsWith(prefix));
}
