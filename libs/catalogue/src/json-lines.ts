/** Finds the lines of values in a JSON text. */
import { type Node, type ParseError, parseTree } from 'jsonc-parser';
import type { JsonPath } from './validation.ts';

/** As strict as `JSON.parse`, which decides whether a text is valid. */
const STRICT = { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false };

/** Returns the line of each value, from 1. That of a missing value is the line of the closest existing parent. */
export function findLines(text: string, paths: readonly JsonPath[]): readonly number[] {
  const root = parseTree(text, [], STRICT);
  const lineEnds = [...text.matchAll(/\n/g)].map(({ index }) => index);
  return paths.map((path) => {
    const position = findPosition(root, path);
    return lineEnds.findLastIndex((end) => end < position) + 2;
  });
}

/** Returns the line of the first syntax error, from 1. */
export function findSyntaxErrorLine(text: string): number {
  const errors: ParseError[] = [];
  parseTree(text, errors, STRICT);
  return text.slice(0, errors[0]?.offset).split('\n').length;
}

/** The position of a field is that of its name. Of fields with the same name, the last one applies. */
function findPosition(root: Node | undefined, path: JsonPath): number {
  let position = 0;
  let parent = root;
  for (const name of path) {
    const child =
      parent?.type === 'array'
        ? parent.children?.[name as number]
        : parent?.children?.findLast(({ children }) => children?.[0]?.value === name);
    if (!child) break;
    position = child.offset;
    parent = child.type === 'property' ? child.children?.[1] : child;
  }
  return position;
}
