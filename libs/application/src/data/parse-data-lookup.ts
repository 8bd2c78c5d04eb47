/**
 * Parses a data lookup into the call to its provider. The lookup is validated before money is held, and cannot set the
 * fields that the entry sets.
 */

import type { DataEndpoint } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../errors.ts';
import type { DataCall } from '../providers/data-calls.ts';
import { applyCaps, getMaxResults } from './caps.ts';
import { normalizeFieldName } from './field-paths.ts';
import { assertParameters } from './parameter-schemas.ts';

/** A lookup as the client sent it. */
export interface RawDataLookup {
  /** The value of a parameter that occurs several times is a list. */
  readonly query: JsonObject;
  readonly body: unknown;
}

export interface ParsedDataLookup extends Pick<DataCall, 'method' | 'path' | 'query' | 'body' | 'headers'> {
  /** Maximum number of results that the provider can invoice; 0 if it does not invoice results. */
  readonly maxResults: number;
}

const MAX_PARAMETERS = 100;
const MAX_NAME_LENGTH = 256;
const MAX_VALUE_LENGTH = 4_096;
/** Maximum length of an encoded query. Many servers and proxies drop a longer one without a response. */
const MAX_QUERY_LENGTH = 8_192;
/** Allowed values of a field in a path. */
const PATH_SEGMENT = /^(?!\.+$)[\w.-]{1,256}$/;

/** @throws InvalidRequestError 400, which names the field if there is one */
export function parseDataLookup(input: RawDataLookup, entry: DataEndpoint): ParsedDataLookup {
  const { upstreamMethod: method = entry.method, headers = {}, always = {} } = entry;
  const requestFields = parseRequestFields(input, entry);
  // If a provider assigns fields one by one, the fields in `__proto__` would be inherited and bypass every cap.
  if (Object.hasOwn(requestFields, '__proto__'))
    throw new InvalidRequestError(400, '__proto__ is not allowed', '__proto__');
  const fields = applyCaps(requestFields, entry);
  assertParameters(requestFields, entry);
  const { path, rest } = fillPath(entry.path, fields);
  const reservedNames = new Set(Object.keys(always).map(normalizeFieldName));
  const clientFields = Object.entries(rest).filter(([name]) => !reservedNames.has(normalizeFieldName(name)));
  const all: JsonObject = Object.fromEntries([...clientFields, ...Object.entries(always)]);
  const sent = method === 'GET' ? { query: toQuery(all) } : { query: [], body: all };
  return { method, path, headers, ...sent, maxResults: getMaxResults(fields, entry) };
}

function parseRequestFields({ query, body }: RawDataLookup, { method }: DataEndpoint): JsonObject {
  if (method === 'GET') return validateQuery(query);
  const [stray] = Object.keys(query);
  if (stray !== undefined)
    throw new InvalidRequestError(400, 'This lookup accepts its fields in the body, not in the query', stray);
  if (!isJsonObject(body ?? {})) throw new InvalidRequestError(400, 'The body must be a JSON object');
  // Every field is compared with all fields that have a cap.
  if (Object.keys(body ?? {}).length > MAX_PARAMETERS)
    throw new InvalidRequestError(400, `The body may have at most ${MAX_PARAMETERS} fields`);
  return (body ?? {}) as JsonObject;
}

function validateQuery(query: JsonObject): JsonObject {
  const values = Object.entries(query).flatMap(([name, value]) => [value].flat().map((item) => [name, item] as const));
  if (values.length > MAX_PARAMETERS)
    throw new InvalidRequestError(400, `The query may have at most ${MAX_PARAMETERS} parameters`);
  for (const [name, value] of values) {
    if (name.length > MAX_NAME_LENGTH)
      throw new InvalidRequestError(400, `Names of parameters may have at most ${MAX_NAME_LENGTH} characters`);
    if (String(value).length > MAX_VALUE_LENGTH)
      throw new InvalidRequestError(400, `${name} may have at most ${MAX_VALUE_LENGTH} characters`, name);
  }
  return query;
}

/** Returns the provider's path, and the fields that are not part of it. */
function fillPath(template: string, fields: JsonObject): { readonly path: string; readonly rest: JsonObject } {
  const used = new Set<string>();
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined) throw new InvalidRequestError(400, `${name} is required`, name);
    const text = typeof value === 'number' ? String(value) : value;
    if (typeof text !== 'string' || !PATH_SEGMENT.test(text))
      throw new InvalidRequestError(
        400,
        `${name} must consist of 1 to 256 letters, digits, dots, hyphens and underscores, not only of dots`,
        name,
      );
    used.add(name);
    return text;
  });
  return { path, rest: Object.fromEntries(Object.entries(fields).filter(([name]) => !used.has(name))) };
}

function toQuery(fields: JsonObject): DataCall['query'] {
  const query = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((item) => [name, formatValue(item, name)] as const),
  );
  if (new URLSearchParams(query as [string, string][]).toString().length > MAX_QUERY_LENGTH)
    throw new InvalidRequestError(
      400,
      `All fields together may have at most ${MAX_QUERY_LENGTH} characters in a query`,
    );
  return query;
}

function formatValue(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new InvalidRequestError(400, `${name} must be a string, a number or a boolean, or a list of them`, name);
}
