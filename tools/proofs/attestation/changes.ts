/** Generates changed copies of parsed JSON, each with the location of its last change. */

export type BundleMutation = readonly [location: string, changed: unknown];

type Json = Readonly<Record<string, unknown>> | readonly unknown[];

const REPLACEMENTS: readonly unknown[] = [
  undefined,
  null,
  '',
  'x',
  0,
  -1,
  1e308,
  true,
  [],
  {},
  [[]],
  '\u0000',
  'A'.repeat(9999),
];

/**
 * Changes each character of each string except `=`, one at a time. In base64 strings of more than eight characters,
 * changes each decoded byte instead.
 */
export function* generateByteChanges(value: unknown, location = ''): Iterable<BundleMutation> {
  if (typeof value === 'string') {
    for (const text of generateAlteredTexts(value)) yield [location, text];
  } else if (isJson(value)) {
    for (const [name, inner] of Object.entries(value)) {
      for (const [where, changed] of generateByteChanges(inner, `${location}/${name}`))
        yield [where, replacePart(value, name, changed)];
    }
  }
}

/** Removes, replaces, repeats, wraps or shortens up to three parts per copy. The changes are the same in every run. */
export function* generateRandomChanges(value: unknown, count: number): Iterable<BundleMutation> {
  const random = createRandom(12);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const paths = [...listPaths(value)];
  for (let i = 0; i < count; i++) {
    let changed = value;
    let location = '';
    for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
      const path = pick(paths);
      location = `/${path.join('/')}`;
      changed = changePart(changed, path, (part) => {
        const way = random();
        if (way < 0.3) return pick(REPLACEMENTS);
        if (way < 0.5) return getPart(value, pick(paths));
        if (way < 0.6) return Array.isArray(part) ? [...part, ...part] : [part];
        return typeof part === 'string' ? truncate(part, random()) : pick(REPLACEMENTS);
      });
    }
    yield [location, changed];
  }
}

function* generateAlteredTexts(text: string): Iterable<string> {
  const bytes = Buffer.from(text, 'base64');
  if (text.length > 8 && bytes.toString('base64') === text) {
    for (let at = 0; at < bytes.length; at++) {
      yield Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte))).toString('base64');
    }
  } else {
    for (let at = 0; at < text.length; at++) {
      if (text[at] === '=') continue; // padding of base64 within a text, which has no meaning
      yield text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
    }
  }
}

function truncate(text: string, where: number): string {
  const at = Math.floor(where * text.length);
  return where < 0.5 ? text.slice(0, at) : text.slice(0, at) + text.slice(at + 1);
}

function* listPaths(value: unknown, path: readonly string[] = []): Iterable<readonly string[]> {
  if (path.length > 0) yield path;
  if (isJson(value)) for (const [name, inner] of Object.entries(value)) yield* listPaths(inner, [...path, name]);
}

function getPart(value: unknown, path: readonly string[]): unknown {
  return path.reduce((part, name) => (isJson(part) ? (part as Record<string, unknown>)[name] : undefined), value);
}

function changePart(value: unknown, [name, ...rest]: readonly string[], change: (part: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  if (!isJson(value)) return value;
  return replacePart(value, name, changePart((value as Record<string, unknown>)[name], rest, change));
}

function replacePart(value: Json, name: string, part: unknown): unknown {
  return Array.isArray(value) ? value.map((item, i) => (String(i) === name ? part : item)) : { ...value, [name]: part };
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

/** A generator of pseudorandom numbers of at least 0 and below 1 (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
