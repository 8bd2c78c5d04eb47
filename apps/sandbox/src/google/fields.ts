/** Validates the fields of a request as Google does: it rejects names that it does not know. */
import { isJsonObject, type JsonObject } from '#kernel';
import { createError, unknownNameError } from './errors.ts';

/**
 * @param path of the object in the request; empty for the request itself, which must be an object
 * @returns the object; an empty one if it is missing
 * @throws HttpError 400
 */
export function parseFields(value: unknown, path: string, names: readonly string[]): JsonObject {
  if (value === undefined && path !== '') return {};
  if (!isJsonObject(value))
    throw createError(
      400,
      path === '' ? 'Invalid JSON payload received. Expected an object.' : `Invalid value at '${path}'`,
    );
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw unknownNameError(unknown, path);
  return value;
}

/** @returns the list; an empty one if it is missing */
export function parseList(value: unknown, path: string): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw createError(400, `Invalid value at '${path}', expected a list`);
}
