/**
 * The whole lines of a text that comes in pieces, however small: each is looked into once. What stands behind the last one is none.
 * @param most characters of a line
 * @param tooLong is called where one has more
 */
export async function* splitLines(
  pieces: AsyncIterable<string>,
  most: number,
  tooLong: () => never,
): AsyncGenerator<string> {
  let begun: string[] = [];
  let length = 0;
  for await (const piece of pieces) {
    const [first = '', ...others] = piece.split('\n');
    begun.push(first);
    length += first.length;
    for (const next of others) {
      if (length > most) tooLong();
      yield begun.join('');
      begun = [next];
      length = next.length;
    }
    if (length > most) tooLong();
  }
}
