/** Bounds and text splitting that all token counts share. Tokens themselves are counted in worker threads. */

/** Maximum tokens per character. Measured: random base64 0.71, random punctuation 0.66, English and code 0.24. */
const TOKENS_PER_CHARACTER = 0.75;
/**
 * Together with `TOKENS_PER_CHARACTER` this allows at least one token per byte of a character outside ASCII, which is
 * the worst case.
 */
const TOKENS_PER_EXTRA_BYTE = 1.25;

/**
 * The time of a tokenizer grows with the square of the length of a run without gaps. So a text is counted in parts of
 * at most this many characters.
 */
const MAX_PART_CHARACTERS = 1_000;
const MAX_CHECKED_CHARACTERS = 32;
const MAX_ASCII = 0x7f;
const LETTER = /^\p{L}$/u;
const DIGIT = /^\p{N}$/u;

/**
 * Returns an upper bound, in practice, of the tokens of a text, without a tokenizer.
 * @param sufficientTokens if the characters alone may be so many tokens, their bytes are not counted, which takes 16 ms
 * for 24 MB: the result is not below this number, but may be below the bound
 */
export function countMaxTextTokens(text: string, sufficientTokens = Number.POSITIVE_INFINITY): number {
  const characters = text.length;
  const asciiTokens = countMaxAsciiTokens(characters);
  // Most of the texts of a request are names. For them the check is faster than the call of native code.
  if (asciiTokens >= sufficientTokens || (characters <= MAX_CHECKED_CHARACTERS && isAscii(text))) return asciiTokens;
  return asciiTokens + (Buffer.byteLength(text) - characters) * TOKENS_PER_EXTRA_BYTE;
}

/** Returns the upper bound for a text of this many characters, all of them ASCII. */
export function countMaxAsciiTokens(characters: number): number {
  return characters * TOKENS_PER_CHARACTER + 1;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > MAX_ASCII) return false;
  return true;
}

/**
 * Splits a text into the parts in which it is counted. A part ends where a word or a number ends, since no token
 * continues there. A part without such a place is split at the maximum length, which can add tokens.
 */
export function* splitForTokenizer(text: string, maxCharacters = MAX_PART_CHARACTERS): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = findPartEnd(text, start, maxCharacters);
    yield text.slice(start, end);
    start = end;
  }
}

/** Searches only the last `MAX_PART_CHARACTERS` of the part for a boundary, so that the search takes bounded time. */
function findPartEnd(text: string, start: number, maxCharacters: number): number {
  const maxEnd = start + maxCharacters;
  if (maxEnd >= text.length) return text.length;
  const minEnd = Math.max(start, maxEnd - MAX_PART_CHARACTERS);
  for (let end = maxEnd; end > minEnd; end--) if (isTokenBoundary(text, end)) return end;
  return maxEnd;
}

/**
 * Whether every token ends here: tokenizers split a text into words, numbers and the rest before they search for
 * tokens.
 */
export function isTokenBoundary(text: string, at: number): boolean {
  const before = text[at - 1] ?? '';
  const after = String.fromCodePoint(text.codePointAt(at) ?? 0);
  return (LETTER.test(before) && !LETTER.test(after)) || (DIGIT.test(before) && !DIGIT.test(after));
}
