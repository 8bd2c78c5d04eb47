/**
 * The whole lines of a text that comes in pieces, however small: each is looked into once. What stands behind the last one is none.
 * @param maxLength characters of a line
 * @param onTooLong is called where one has more
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
