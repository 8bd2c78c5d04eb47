/** Where things stand in a JSON text: only looked for when something is wrong with it. */
import type { JsonPath } from './validation-rules.ts';

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\r\n]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The line on which a value stands, from 1; of a value that is not there, the line of what it is missing from. */
export function findLine(text: string, path: JsonPath): number {
  const { starts } = scanned(text);
  for (let length = path.length; length > 0; length--) {
    const start = starts.get(JSON.stringify(path.slice(0, length)));
    if (start !== undefined) return lineAt(text, start);
  }
  return 1;
}

/** The line from which on a text is no JSON. */
export function findSyntaxErrorLine(text: string): number {
  return lineAt(text, scanned(text).end);
}

function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length;
}

/** Positions of fields by their names, of elements by their values; `end` is where it stops being JSON. */
function scanned(text: string): { readonly starts: ReadonlyMap<string, number>; readonly end: number } {
  const scanner = new Scanner(text);
  try {
    scanner.value([]);
    scanner.skip(SPACE);
  } catch (error) {
    if (!(error instanceof NoJson)) throw error;
  }
  return { starts: scanner.starts, end: scanner.at };
}

class NoJson extends Error {}

class Scanner {
  readonly starts = new Map<string, number>();
  at = 0;

  constructor(private readonly text: string) {}

  value(path: JsonPath): void {
    this.skip(SPACE);
    const key = JSON.stringify(path);
    if (typeof path.at(-1) !== 'string') this.starts.set(key, this.at);
    if (this.next('{')) this.members(path);
    else if (this.next('[')) this.elements(path);
    else this.skip(this.text[this.at] === '"' ? STRING : LITERAL);
  }

  /** Moves on over what matches; white space is optional, anything else must be there. */
  skip(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const [found] = pattern.exec(this.text) ?? [];
    if (found === undefined) throw new NoJson();
    this.at += found.length;
    return found;
  }

  private members(path: JsonPath): void {
    this.skip(SPACE);
    if (this.next('}')) return;
    do {
      this.skip(SPACE);
      const start = this.at;
      const name: string = JSON.parse(this.skip(STRING));
      this.starts.set(JSON.stringify([...path, name]), start);
      this.skip(SPACE);
      this.expect(':');
      this.value([...path, name]);
      this.skip(SPACE);
    } while (this.next(','));
    this.expect('}');
  }

  private elements(path: JsonPath): void {
    this.skip(SPACE);
    if (this.next(']')) return;
    let i = 0;
    do {
      this.value([...path, i++]);
      this.skip(SPACE);
    } while (this.next(','));
    this.expect(']');
  }

  private next(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private expect(character: string): void {
    if (!this.next(character)) throw new NoJson();
  }
}
