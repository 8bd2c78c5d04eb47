/**
 * Selects what `JsonHttpClient` sends to a provider, as the last step before the network. Providers bill for tools,
 * content parts and fields of their own that the price list does not cover. Only listed fields are sent, whatever a
 * caller or the catalogue specifies. Other fields are dropped. A tool or content part that is not listed is rejected by
 * name, because dropping it would change the response without notice.
 */

import { UpstreamError } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

/**
 * Returns the value to send, which may have fewer fields; undefined drops the value. The input does not change.
 * @param at path of the value in the request
 * @throws UpstreamError with `invalid_request` for a value that is not listed and must not be dropped
 */
export type FieldFilter = (value: unknown, at: string) => unknown;

/** Sends the value unchanged: for content that the model reads, and for fields that do not affect billing. */
export const allowAny: FieldFilter = (value) => value;

/** Sends the listed fields of an object. Returns the same object if nothing has to be dropped or changed. */
export const allowFields = (filters: Readonly<Record<string, FieldFilter>>): FieldFilter => {
  const filtersByName = new Map(Object.entries(filters));
  return (value, at) => {
    if (!isJsonObject(value)) return toScalar(value);
    const names = Object.keys(value);
    let copy: Record<string, unknown> | undefined;
    for (const [i, name] of names.entries()) {
      const original = value[name];
      const sent = filtersByName.get(name)?.(original, at === '' ? name : `${at}.${name}`);
      if (sent === original && !copy) continue;
      copy ??= Object.fromEntries(names.slice(0, i).map((earlier) => [earlier, value[earlier]]));
      if (sent !== undefined) copy[name] = sent;
    }
    return copy ?? value;
  };
};

/** Adds fields to what a filter sends, whatever the request contains. */
export const withFixedFields =
  (rule: FieldFilter, fields: Readonly<Record<string, string>>): FieldFilter =>
  (value, at) => {
    const sent = rule(value, at);
    return isJsonObject(sent) ? { ...sent, ...fields } : sent;
  };

/** Filters every element of an array with the same rule. Returns the same array if no element changes. */
export const allowEach =
  (rule: FieldFilter): FieldFilter =>
  (value, at) => {
    if (!Array.isArray(value)) return toScalar(value);
    let copy: unknown[] | undefined;
    for (const [i, original] of value.entries()) {
      const sent = rule(original, `${at}[${i}]`);
      if (sent === original) continue;
      copy ??= [...value];
      copy[i] = sent;
    }
    return copy ? copy.filter((element) => element !== undefined) : value;
  };

/**
 * Filters an object by its `type`, and rejects types that are not listed. An array counts as an object without fields.
 * A scalar is sent unchanged.
 * @param subject names these objects in error messages, such as `Tools`
 * @param inferType returns the type of an object without `type`
 */
export const allowByType =
  (
    subject: string,
    filters: Readonly<Record<string, FieldFilter>>,
    inferType?: (value: JsonObject) => string | undefined,
  ): FieldFilter =>
  (value, at) => {
    if (typeof value !== 'object' || value === null) return value;
    const object = isJsonObject(value) ? value : {};
    const type = object.type ?? inferType?.(object);
    if (typeof type === 'string' && Object.hasOwn(filters, type)) return filters[type]?.(object, at);
    const name = type ?? Object.keys(object)[0] ?? null;
    throw invalidRequest(`${subject} of the type "${String(name)}" are not supported`, `${at}.type`);
  };

/** Drops null and rejects every other value, because dropping it would change the response without notice. */
export const rejectField =
  (subject: string): FieldFilter =>
  (value, at) => {
    if ((value ?? null) !== null) throw invalidRequest(`${subject} are not supported`, at);
    return undefined;
  };

/** Sends the listed values and rejects all others. The value may be an array of them. */
export const allowValues =
  (subject: string, values: readonly string[]): FieldFilter =>
  (value, at) => {
    const invalid = [value].flat().find((element) => !values.includes(element as string));
    if (invalid === undefined) return value;
    throw invalidRequest(`${subject} of the type "${String(invalid)}" are not supported`, at);
  };

export function invalidRequest(message: string, param: string): UpstreamError {
  return new UpstreamError('invalid_request', message, { param });
}

/** For a value of an unexpected type: sends a scalar, which the provider validates, and drops an object or array. */
function toScalar(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? undefined : value;
}
