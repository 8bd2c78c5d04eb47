/**
 * The tokens of the sandbox. The rules are simple, so that tokens can be counted by hand:
 * - a run of ASCII letters, digits, `_` and `'` is one token for every 8 characters or part of them;
 * - every other character that is not common white space is one token.
 * "Hello, world!" is Hello · , · world · ! = 4 tokens; "internationalisation" is 20 letters = 3 tokens.
 */
const CHARACTERS_PER_TOKEN = 8;

export function countTokens(text: string): number {
  let tokens = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isWordCharacter(code)) {
      if (run++ % CHARACTERS_PER_TOKEN === 0) tokens++;
    } else {
      run = 0;
      if (isSymbol(code)) tokens++;
    }
  }
  return tokens;
}

/** Returns the offset of each token in a text. */
export function findTokenStarts(text: string): number[] {
  const starts: number[] = [];
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const begins = isWordCharacter(code) ? run++ % CHARACTERS_PER_TOKEN === 0 : isSymbol(code);
    if (!isWordCharacter(code)) run = 0;
    if (begins) starts.push(at);
  }
  return starts;
}

function isWordCharacter(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 48 && code <= 57) ||
    (code >= 65 && code <= 90) ||
    code === 95 ||
    code === 39
  );
}

/** Excludes the characters up to U+0020, two other spaces, and the second half of a surrogate pair. */
function isSymbol(code: number): boolean {
  return code > 32 && code !== 0xa0 && code !== 0x3000 && (code < 0xdc00 || code > 0xdfff);
}

const VOCABULARY = (
  'every coin that comes in is counted twice and every coin that goes out is written down before it leaves so the book ' +
  'is never wrong for long and whoever doubts a line may read the whole page again from its very first entry'
).split(' ');

/** Returns a text of exactly this many tokens: words in a fixed order. */
export function generateProse(tokens: number): string {
  let text = '';
  for (let at = 0; at < tokens; at++) text += at === 0 ? VOCABULARY[0] : ` ${VOCABULARY[at % VOCABULARY.length]}`;
  return text;
}
