/** Validates data lookups by the schemas of the catalogue. Each schema is compiled once. */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { DataEndpoint } from '#catalogue';
import { type JsonObject } from '#kernel';
import { InvalidRequestError } from '../errors.ts';

const AJV_OPTIONS = { strict: false, validateFormats: false, logger: false } as const;
const bodyAjv = new Ajv2020(AJV_OPTIONS);
/** Query values are text; this validator converts them to the types of the schema. */
const queryAjv = new Ajv2020({ ...AJV_OPTIONS, coerceTypes: true });

/** By schema, for as long as the schema exists. */
const validatorCache = new WeakMap<object, ValidateFunction>();

/** @throws InvalidRequestError 400, which names the field if there is one */
export function assertParameters(fields: JsonObject, { method, parameters }: DataEndpoint): void {
  if (!parameters) return;
  const validate = validatorCache.get(parameters) ?? (method === 'GET' ? queryAjv : bodyAjv).compile(parameters);
  validatorCache.set(parameters, validate);
  // The conversion changes only the copy: the provider receives the text.
  if (validate(method === 'GET' ? { ...fields } : fields)) return;
  throw toInvalidRequestError((validate.errors ?? [])[0]);
}

function toInvalidRequestError(error: ErrorObject | undefined): InvalidRequestError {
  const { instancePath = '', params = {}, message = 'is invalid', keyword } = error ?? {};
  const missing = keyword === 'required' ? `/${params.missingProperty}` : '';
  const unknown = keyword === 'additionalProperties' ? `/${params.additionalProperty}` : '';
  const field = `${instancePath}${missing}${unknown}`.slice(1).replaceAll('/', '.');
  const problem = missing ? 'is required' : unknown ? 'is not supported' : message;
  return new InvalidRequestError(
    400,
    `${field === '' ? 'The request' : field} ${problem}`,
    field === '' ? null : field,
  );
}
