/** What a client with a bug sends: a good body with one member, at any depth, that is something else, or missing. */

export interface Malformed {
  /** What was done, and where: `messages[0].content[1].type = null`. */
  readonly change: string;
  readonly body: unknown;
}

const MISSING = Symbol('missing');
const INSTEAD: readonly unknown[] = [MISSING, null, true, -1, '', [], [null], {}];

/** Every copy of a body in which one member is malformed, the outermost first. */
export function* malformed(body: unknown): Generator<Malformed> {
  for (const path of pathsIn(body)) {
    for (const instead of INSTEAD) {
      const what = instead === MISSING ? 'missing' : JSON.stringify(instead);
      yield { change: `${path.join('.')} = ${what}`, body: changed(body, path, instead) };
    }
  }
}

type Path = readonly (string | number)[];

function* pathsIn(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return;
  const inside = Object.entries(value).map(([name, each]) => {
    return [[...path, Array.isArray(value) ? Number(name) : name], each] as const;
  });
  for (const [at] of inside) yield at;
  for (const [at, each] of inside) yield* pathsIn(each, at);
}

function changed(value: unknown, [name, ...rest]: Path, instead: unknown): unknown {
  if (name === undefined) return instead;
  const copy: Record<string | number, unknown> = Array.isArray(value)
    ? ([...value] as never)
    : { ...(value as object) };
  const each = changed(copy[name], rest, instead);
  if (each !== MISSING) copy[name] = each;
  else if (Array.isArray(copy)) copy.splice(Number(name), 1);
  else delete copy[name];
  return copy;
}
