/** Finds the lines of values in a JSON text. Only used to report mistakes, so the code need not be fast. */
import type { JsonPath } from './validation-rules.ts';

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\r\n]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Returns the line of a value, from 1. For a missing value, returns the line of the closest existing parent. */
export function findLine(text: string, path: JsonPath): number {
  const { starts } = scan(text);
  for (let length = path.length; length > 0; length--) {
    const start = starts.get(JSON.stringify(path.slice(0, length)));
    if (start !== undefined) return getLineNumber(text, start);
  }
  return 1;
}

/** Returns the line of the first syntax error, from 1. */
export function findSyntaxErrorLine(text: string): number {
  return getLineNumber(text, scan(text).end);
}

function getLineNumber(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}

/**
 * Returns the positions of values by their JSON path, and the end of the valid JSON. The position of a field is that of
 * its name.
 */
function scan(text: string): { readonly starts: ReadonlyMap<string, number>; readonly end: number } {
  const scanner = new Scanner(text);
  try {
    scanner.scanValue([]);
    scanner.skip(SPACE);
  } catch (error) {
    if (!(error instanceof InvalidJsonError)) throw error;
  }
  return { starts: scanner.starts, end: scanner.offset };
}

class InvalidJsonError extends Error {}

class Scanner {
  readonly starts = new Map<string, number>();
  offset = 0;

  constructor(private readonly text: string) {}

  scanValue(path: JsonPath): void {
    this.skip(SPACE);
    const key = JSON.stringify(path);
    if (typeof path.at(-1) !== 'string') this.starts.set(key, this.offset);
    if (this.consume('{')) this.scanMembers(path);
    else if (this.consume('[')) this.scanElements(path);
    else this.skip(this.text[this.offset] === '"' ? STRING : LITERAL);
  }

  /** Advances past a match of a sticky pattern. @throws InvalidJsonError if it does not match at the current offset */
  skip(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const [match] = pattern.exec(this.text) ?? [];
    if (match === undefined) throw new InvalidJsonError();
    this.offset += match.length;
    return match;
  }

  private scanMembers(path: JsonPath): void {
    this.skip(SPACE);
    if (this.consume('}')) return;
    do {
      this.skip(SPACE);
      const start = this.offset;
      const name: string = JSON.parse(this.skip(STRING));
      this.starts.set(JSON.stringify([...path, name]), start);
      this.skip(SPACE);
      this.expect(':');
      this.scanValue([...path, name]);
      this.skip(SPACE);
    } while (this.consume(','));
    this.expect('}');
  }

  private scanElements(path: JsonPath): void {
    this.skip(SPACE);
    if (this.consume(']')) return;
    let i = 0;
    do {
      this.scanValue([...path, i++]);
      this.skip(SPACE);
    } while (this.consume(','));
    this.expect(']');
  }

  private consume(character: string): boolean {
    if (this.text[this.offset] !== character) return false;
    this.offset += 1;
    return true;
  }

  private expect(character: string): void {
    if (!this.consume(character)) throw new InvalidJsonError();
  }
}
