/**
 * Generates the bodies of a client with a bug: a valid body in which one member, at any depth, is replaced or missing.
 */

export interface Malformed {
  /** Describes the change, such as `messages.0.content.1.type = null`. */
  readonly change: string;
  readonly body: unknown;
}

const MISSING = Symbol('missing');
const REPLACEMENTS: readonly unknown[] = [MISSING, null, true, -1, '', [], [null], {}];

/**
 * Yields copies of a body, in each of which one member is missing or has one of the other REPLACEMENTS. A member comes
 * before those inside it.
 */
export function* generateMalformed(body: unknown): Generator<Malformed> {
  for (const path of listPaths(body)) {
    for (const replacement of REPLACEMENTS) {
      const what = replacement === MISSING ? 'missing' : JSON.stringify(replacement);
      yield { change: `${path.join('.')} = ${what}`, body: replaceAt(body, path, replacement) };
    }
  }
}

type Path = readonly (string | number)[];

function* listPaths(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return;
  const inside = Object.entries(value).map(([name, member]) => {
    return [[...path, Array.isArray(value) ? Number(name) : name], member] as const;
  });
  for (const [at] of inside) yield at;
  for (const [at, member] of inside) yield* listPaths(member, at);
}

function replaceAt(value: unknown, [name, ...rest]: Path, replacement: unknown): unknown {
  if (name === undefined) return replacement;
  const copy: Record<string | number, unknown> = Array.isArray(value)
    ? ([...value] as never)
    : { ...(value as object) };
  const member = replaceAt(copy[name], rest, replacement);
  if (member !== MISSING) copy[name] = member;
  else if (Array.isArray(copy)) copy.splice(Number(name), 1);
  else delete copy[name];
  return copy;
}
