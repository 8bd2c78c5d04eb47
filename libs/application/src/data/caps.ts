/** Limits the fields that multiply what a provider invoices, so that a lookup never costs more than its price. */

import type { DataEndpoint, FieldCap } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../errors.ts';
import { getByPath, normalizeFieldName } from './field-paths.ts';

/** Numbers in a query are text. */
const DIGITS = /^[1-9]\d{0,15}$/;

/**
 * Checks the fields that have a cap, and adds the defaults of those that the request omits.
 * @throws InvalidRequestError 400 that names the field
 */
export function applyCaps(fields: JsonObject, entry: DataEndpoint): JsonObject {
  const { caps = {}, method } = entry;
  return Object.entries(caps).reduce((result, [field, cap]) => {
    const path = method === 'GET' ? [field] : field.split('.');
    return applyCapAt(result, path, { field, cap, isList: isList(field, entry), isQuery: method === 'GET' });
  }, fields);
}

interface CappedField {
  readonly field: string;
  readonly cap: FieldCap;
  readonly isList: boolean;
  readonly isQuery: boolean;
}

function applyCapAt(fields: JsonObject, [name = '', ...rest]: readonly string[], cappedField: CappedField): JsonObject {
  const { field, cap } = cappedField;
  const other = Object.keys(fields).find((key) => key !== name && normalizeFieldName(key) === normalizeFieldName(name));
  if (other !== undefined) throw invalidField(other, `is spelled ${name} here`);
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (rest.length > 0) {
    if (value !== undefined && !isJsonObject(value)) throw invalidField(field, `must be in an object "${name}"`);
    const inside = applyCapAt(value ?? {}, rest, cappedField);
    return value === undefined && Object.keys(inside).length === 0 ? fields : { ...fields, [name]: inside };
  }
  if (value === undefined) {
    if (cap.default === undefined) return fields;
    return { ...fields, [name]: cappedField.isQuery ? String(cap.default) : cap.default };
  }
  assertWithinCap(value, cappedField);
  return fields;
}

function assertWithinCap(value: unknown, { field, cap: { max }, isList, isQuery }: CappedField): void {
  if (isList) {
    if (!Array.isArray(value) || value.length === 0) throw invalidField(field, 'must be a non-empty list');
    if (value.length > max)
      throw invalidField(field, `may have at most ${max} ${max === 1 ? 'element' : 'elements'} here`);
    return;
  }
  const number = isQuery && typeof value === 'string' && DIGITS.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 1 || number > max)
    throw invalidField(field, `must be an integer from 1 to ${max} here`);
}

/** Returns the maximum number of results that the provider can invoice; 0 if it does not invoice results. */
export function getMaxResults(fields: JsonObject, { billed, caps = {} }: DataEndpoint): number {
  if (!billed) return 0;
  const value = getByPath(fields, billed.cap);
  if (Array.isArray(value)) return value.length;
  return Number(value ?? caps[billed.cap]?.max ?? 0);
}

/** Whether a field is a list according to the entry, not to the request, which may contain anything. */
function isList(field: string, { method, caps = {}, parameters, example }: DataEndpoint): boolean {
  if (caps[field]?.default !== undefined) return false;
  const path = method === 'GET' ? [field] : field.split('.');
  const schema = path.reduce<unknown>(
    (at, name) => (isJsonObject(at) && isJsonObject(at.properties) ? at.properties[name] : undefined),
    parameters,
  );
  if (isJsonObject(schema) && schema.type !== undefined) return schema.type === 'array';
  return Array.isArray(path.reduce<unknown>((at, name) => (isJsonObject(at) ? at[name] : undefined), example));
}

function invalidField(field: string, problem: string): InvalidRequestError {
  return new InvalidRequestError(400, `${field} ${problem}`, field);
}
