/**
 * Unique phrases, and a search for them in many encodings in which they may have been stored. All phrases of a set
 * begin with the same letters, so a search for these letters finds every phrase in these encodings.
 */
import { randomInt } from 'node:crypto';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** Twelve random letters do not occur by chance: there are about 10^17 combinations. */
const STEM_LETTERS = 12;
const CONTEXT_BYTES = 48;

export interface Find {
  readonly form: string;
  /**
   * The find and up to `CONTEXT_BYTES` bytes on each side. "·" replaces each run of bytes that are not printable ASCII
   * characters.
   */
  readonly context: string;
}

interface Form {
  readonly name: string;
  readonly bytes: Buffer;
}

export class SeededPhrases {
  readonly stem = Array.from({ length: STEM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  private readonly forms = createForms(this.stem);
  /** The length of the longest form. */
  readonly maxFormBytes = Math.max(...this.forms.map(({ bytes }) => bytes.length));
  private count = 0;

  /** Returns a phrase that was not used before. */
  createPhrase(): string {
    return `${this.stem}${(++this.count).toString(36)}q`;
  }

  /** The number of phrases so far. */
  get phraseCount(): number {
    return this.count;
  }

  get formCount(): number {
    return this.forms.length;
  }

  /** @returns the first occurrence of each form that occurs */
  findForms(bytes: Buffer): readonly Find[] {
    return this.forms.flatMap(({ name, bytes: form }) => {
      const at = bytes.indexOf(form);
      if (at < 0) return [];
      const context = bytes
        .subarray(Math.max(0, at - CONTEXT_BYTES), at + form.length + CONTEXT_BYTES)
        .toString('latin1');
      return [{ form: name, context: context.replaceAll(/[^ -~]+/g, '·') }];
    });
  }
}

function createForms(stem: string): readonly Form[] {
  const characters = [...stem];
  const codes = characters.map((character) => character.charCodeAt(0).toString(16));
  const textForms: Readonly<Record<string, string>> = {
    verbatim: stem,
    'in capitals': stem.toUpperCase(),
    reversed: characters.toReversed().join(''),
    'JSON escapes': codes.map((code) => `\\u00${code}`).join(''),
    'JSON escapes in capitals': codes.map((code) => `\\u00${code.toUpperCase()}`).join(''),
    'JSON escapes, twice': codes.map((code) => `\\\\u00${code}`).join(''),
    'URL escapes': codes.map((code) => `%${code}`).join(''),
    'URL escapes in capitals': codes.map((code) => `%${code.toUpperCase()}`).join(''),
    'HTML escapes': characters.map((character) => `&#${character.charCodeAt(0)};`).join(''),
    'HTML escapes in hex': codes.map((code) => `&#x${code};`).join(''),
    'a list of numbers': characters.map((character) => character.charCodeAt(0)).join(','),
    'a list of numbers, spaced': characters.map((character) => character.charCodeAt(0)).join(', '),
  };
  const raw: Readonly<Record<string, Buffer>> = {
    'UTF-8': Buffer.from(stem),
    'UTF-16': Buffer.from(stem, 'utf16le'),
    'UTF-16, big-endian': Buffer.from(stem, 'utf16le').swap16(),
  };
  const encoded = Object.entries(raw).flatMap(([name, bytes]) => [
    ...(name === 'UTF-8' ? [] : [{ name, bytes }]),
    { name: `hex of ${name}`, bytes: Buffer.from(bytes.toString('hex')) },
    { name: `hex of ${name} in capitals`, bytes: Buffer.from(bytes.toString('hex').toUpperCase()) },
    ...toBase64Variants(bytes).map((variant, i) => ({
      name: `base64 of ${name}, ${i} bytes in`,
      bytes: Buffer.from(variant),
    })),
  ]);
  return [
    ...Object.entries(textForms).flatMap(([name, text]) => [
      { name, bytes: Buffer.from(text) },
      // V8 stores strings with a character beyond Latin-1 in UTF-16.
      ...(name === 'verbatim' ? [] : [{ name: `${name}, UTF-16`, bytes: Buffer.from(text, 'utf16le') }]),
    ]),
    ...encoded,
  ];
}

/** Returns the base64 characters that do not depend on adjacent bytes, for the three possible alignments. */
function toBase64Variants(bytes: Buffer): readonly string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replaceAll('=', '');
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + bytes.length) * 8) / 6);
    return text.slice(first, last);
  });
}
