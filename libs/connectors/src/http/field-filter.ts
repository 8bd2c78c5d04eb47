/**
 * What of a request may go to a vendor: the last step before the wire, one for all protocols. Vendors bill for tools of
 * their own, for parts and for fields that no price of ours knows; whatever a caller or a catalogue may write, only what is
 * listed goes out. What a list does not have is left out, as an unknown field always was; what the caller would miss, a
 * tool or a part of the content, is refused by its name.
 */

import { UpstreamError } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

/** @returns what is sent of a value, or undefined for nothing of it @throws UpstreamError with `invalid_request` */
export type FieldFilter = (value: unknown, at: string) => unknown;

/** The value as it is, whatever it consists of: what the model reads, or what says nothing about what is billed. */
export const allowAny: FieldFilter = (value) => value;

/** The fields that are listed; the object itself where it has no others. */
export const allowFields = (filters: Readonly<Record<string, FieldFilter>>): FieldFilter => {
  const filtersByName = new Map(Object.entries(filters));
  return (value, at) => {
    if (!isJsonObject(value)) return toScalar(value);
    let copy: Record<string, unknown> | undefined;
    for (const name of Object.keys(value)) {
      const original = value[name];
      const sent = filtersByName.get(name)?.(original, at === '' ? name : `${at}.${name}`);
      if (sent === original) continue;
      copy ??= { ...value };
      if (sent === undefined) delete copy[name];
      else copy[name] = sent;
    }
    return copy ?? value;
  };
};

/** Each element by the same rule; the list itself where all of them go as they are. */
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
 * Things that say by `type` what they are.
 * @param subject they are called where one of them is refused, such as `Tools`
 * @param inferType the type of one that does not say it
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

/** Refused wherever it is given: the caller would miss it. */
export const rejectField =
  (subject: string): FieldFilter =>
  (value, at) => {
    if ((value ?? null) !== null) throw invalidRequest(`${subject} are not supported`, at);
    return undefined;
  };

/** Words that are listed; any other is refused. */
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

/** What cannot have anything in it is for the vendor to judge. */
function toScalar(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? undefined : value;
}
