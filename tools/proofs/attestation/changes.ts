/** Ways to change what was parsed from JSON, each with the place that is changed. */

export type BundleMutation = readonly [place: string, changed: unknown];

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

/** Each byte of each text, one at a time: of what is base64, each byte that it stands for. */
export function* byteChanges(value: unknown, place = ''): Iterable<BundleMutation> {
  if (typeof value === 'string') {
    for (const text of otherTexts(value)) yield [place, text];
  } else if (isJson(value)) {
    for (const [name, inner] of Object.entries(value)) {
      for (const [where, changed] of byteChanges(inner, `${place}/${name}`))
        yield [where, withPart(value, name, changed)];
    }
  }
}

/** Parts removed, replaced, repeated, exchanged and cut, a few at a time; the same ones each time. */
export function* randomChanges(value: unknown, count: number): Iterable<BundleMutation> {
  const random = generator(12);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const places = [...placesIn(value)];
  for (let i = 0; i < count; i++) {
    let changed = value;
    let place = '';
    for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
      const path = pick(places);
      place = `/${path.join('/')}`;
      changed = changedAt(changed, path, (part) => {
        const way = random();
        if (way < 0.3) return pick(REPLACEMENTS);
        if (way < 0.5) return partAt(value, pick(places));
        if (way < 0.6) return Array.isArray(part) ? [...part, ...part] : [part];
        return typeof part === 'string' ? cut(part, random()) : pick(REPLACEMENTS);
      });
    }
    yield [place, changed];
  }
}

function* otherTexts(text: string): Iterable<string> {
  const bytes = Buffer.from(text, 'base64');
  if (text.length > 8 && bytes.toString('base64') === text) {
    for (let at = 0; at < bytes.length; at++) {
      yield Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte))).toString('base64');
    }
  } else {
    for (let at = 0; at < text.length; at++) {
      if (text[at] === '=') continue; // the end of base64 within a text, which means nothing
      yield text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
    }
  }
}

function cut(text: string, where: number): string {
  const at = Math.floor(where * text.length);
  return where < 0.5 ? text.slice(0, at) : text.slice(0, at) + text.slice(at + 1);
}

function* placesIn(value: unknown, path: readonly string[] = []): Iterable<readonly string[]> {
  if (path.length > 0) yield path;
  if (isJson(value)) for (const [name, inner] of Object.entries(value)) yield* placesIn(inner, [...path, name]);
}

function partAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((part, name) => (isJson(part) ? (part as Record<string, unknown>)[name] : undefined), value);
}

function changedAt(value: unknown, [name, ...rest]: readonly string[], change: (part: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  if (!isJson(value)) return value;
  return withPart(value, name, changedAt((value as Record<string, unknown>)[name], rest, change));
}

function withPart(value: Json, name: string, part: unknown): unknown {
  return Array.isArray(value) ? value.map((each, i) => (String(i) === name ? part : each)) : { ...value, [name]: part };
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

/** Numbers from 0 to 1 that only look random (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
