/** What counting tokens has in common, whatever they are counted for. */
import { setImmediate as pause } from 'node:timers/promises';

/** Tokens of a character at most: random base64 has 0.71, random punctuation 0.66; English and code have 0.24. */
const PER_CHARACTER = 0.75;
/** Together with the former never less than a token for each byte of a character outside ASCII, the worst there is. */
const PER_FURTHER_BYTE = 1.25;

/** A tokenizer takes time with the square of a run without gaps, so a text is counted in parts of this many characters. */
const PART_CHARACTERS = 1_000;
/** After so many parts others have a turn. */
const PARTS_AT_ONCE = 20;

/** An upper bound, in practice, of the tokens of a text, without a tokenizer. */
export function boundText(text: string): number {
  const characters = text.length;
  return characters * PER_CHARACTER + (Buffer.byteLength(text) - characters) * PER_FURTHER_BYTE + 1;
}

/** The parts in which a text is counted. Only a cut through a run without gaps can make a token more of it. */
export function* partsAtOnce(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = endOfPart(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

/** The same, with turns for others in between. */
export async function* partsOf(text: string): AsyncGenerator<string> {
  let parts = 0;
  for (const part of partsAtOnce(text)) {
    yield part;
    if (++parts % PARTS_AT_ONCE === 0) await pause();
  }
}

/** In front of the last gap, where a token begins as well. */
function endOfPart(text: string, start: number): number {
  const end = start + PART_CHARACTERS;
  const gap = end < text.length ? text.lastIndexOf(' ', end) : -1;
  return gap > start ? gap : end;
}
