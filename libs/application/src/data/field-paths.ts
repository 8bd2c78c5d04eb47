/** Fields of requests and responses, by their dotted paths. */
import { isJsonObject, type JsonObject } from '#kernel';
/**
 * Returns a field name in the form in which names are compared. Some providers ignore case, read `page_size` as
 * `pageSize`, or `limit[]` and `[limit]` as `limit`. A field that is limited or reserved must not be set in another
 * spelling.
 */
export function normalizeFieldName(name: string): string {
  const [start = ''] = name.split(/[[\]]/).filter(Boolean);
  // NFKC turns compatibility characters into letters. Both case conversions are needed: the other case of some
  // non-ASCII letters is an ASCII letter.
  return start
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

/** Returns the value at a dotted path; undefined if there is none. */
export function getByPath(value: unknown, path: string): unknown {
  let current = value;
  for (const name of path.split('.')) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as JsonObject)[name];
  }
  return current;
}

/** Whether the value means that nothing was found. */
export function isEmptyResult(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isJsonObject(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === false || value === 0 || value === '';
}
