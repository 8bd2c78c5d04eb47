/**
 * Yields the complete lines of a text that arrives in chunks. The text after the last line break is dropped. Each chunk
 * is searched only once, so many small chunks do not take quadratic time.
 * @param maxLength maximum characters of a line
 * @param onTooLong called for a longer line
 */
export async function* splitLines(
  chunks: AsyncIterable<string>,
  maxLength: number,
  onTooLong: () => never,
): AsyncGenerator<string> {
  let pending: string[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const [first = '', ...rest] = chunk.split('\n');
    pending.push(first);
    length += first.length;
    for (const next of rest) {
      if (length > maxLength) onTooLong();
      yield pending.join('');
      pending = [next];
      length = next.length;
    }
    if (length > maxLength) onTooLong();
  }
}
