/** What counting tokens has in common, whatever they are counted for. */
import { setImmediate as pause } from 'node:timers/promises';

/** Tokens of a character at most: random base64 has 0.71, random punctuation 0.66; English and code have 0.24. */
const TOKENS_PER_CHARACTER = 0.75;
/** Together with the former never less than a token for each byte of a character outside ASCII, the worst there is. */
const TOKENS_PER_EXTRA_BYTE = 1.25;

/** A tokenizer takes time with the square of a run without gaps, so a text is counted in parts of this many characters. */
const MAX_PART_CHARACTERS = 1_000;
const LETTER = /^\p{L}$/u;
const DIGIT = /^\p{N}$/u;
/** After so many parts others have a turn. */
const PARTS_PER_TICK = 20;

/** An upper bound, in practice, of the tokens of a text, without a tokenizer. */
export function countMaxTextTokens(text: string): number {
  const characters = text.length;
  return characters * TOKENS_PER_CHARACTER + (Buffer.byteLength(text) - characters) * TOKENS_PER_EXTRA_BYTE + 1;
}

/**
 * The parts in which a text is counted. They are cut where a word or a number ends, where no token goes on; only a cut
 * through a run of letters that is longer than a part can make tokens more of it.
 */
export function* splitForTokenizer(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = findPartEnd(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

/** The same, with turns for others in between. */
export async function* splitForTokenizerAsync(text: string): AsyncGenerator<string> {
  let parts = 0;
  for (const part of splitForTokenizer(text)) {
    yield part;
    if (++parts % PARTS_PER_TICK === 0) await pause();
  }
}

function findPartEnd(text: string, start: number): number {
  const maxEnd = start + MAX_PART_CHARACTERS;
  if (maxEnd >= text.length) return text.length;
  for (let end = maxEnd; end > start; end--) if (isTokenBoundary(text, end)) return end;
  return maxEnd;
}

/** Tokenizers take texts apart into words, numbers and all else, before they look for tokens. */
export function isTokenBoundary(text: string, at: number): boolean {
  const before = text[at - 1] ?? '';
  const after = String.fromCodePoint(text.codePointAt(at) ?? 0);
  return (LETTER.test(before) && !LETTER.test(after)) || (DIGIT.test(before) && !DIGIT.test(after));
}
