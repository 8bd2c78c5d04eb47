/** Fields of a request, and of an answer, by their dotted paths. */
import { isJsonObject, type JsonObject } from '#kernel';
/**
 * What vendors may take for the same name: some ignore case, read `page_size` as `pageSize`, or `limit[]` and `[limit]` as
 * `limit`. What is bounded, or ours to say, must not come in by another spelling.
 */
export function normalizeFieldName(name: string): string {
  const [start = ''] = name.split(/[[\]]/).filter(Boolean);
  // Compatible forms are letters as well. Up and down again: some beside those of ASCII have capitals, or small ones, of ASCII.
  return start
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

/** What an answer has at a dotted path; undefined where there is none. */
export function getByPath(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => {
    return typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined;
  }, value);
}

/** Nothing was found where there is nothing. */
export function isEmptyResult(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isJsonObject(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === false || value === 0 || value === '';
}
