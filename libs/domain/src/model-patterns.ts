/** Lists of models that an API key permits. */

const WILDCARD = '*';

/** @param patterns ids of models and patterns; null permits all models */
export function isModelAllowed(model: string, patterns: readonly string[] | null): boolean {
  return patterns === null || patterns.some((pattern) => matchesModelPattern(model, pattern));
}

/**
 * Returns whether a pattern matches an id completely. `*` stands for any text, also none and also slashes. Each part
 * between two wildcards is searched once, so the time is linear in the number of parts.
 */
export function matchesModelPattern(model: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split(WILDCARD);
  const last = rest.pop();
  if (last === undefined) return model === pattern;
  if (!model.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const index = model.indexOf(part, position);
    if (index < 0) return false;
    position = index + part.length;
  }
  return model.length - last.length >= position && model.endsWith(last);
}
