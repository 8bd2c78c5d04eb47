/** Requests for data are checked by the schemas of the catalogue, each of which is compiled once. */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { DataEndpoint } from '#catalogue';
import { type JsonObject } from '#kernel';
import { InvalidRequestError } from '../errors.ts';

const AJV_OPTIONS = { strict: false, validateFormats: false, logger: false } as const;
const bodyAjv = new Ajv2020(AJV_OPTIONS);
/** Everything in a query is text, and is read as what the schema says it is. */
const queryAjv = new Ajv2020({ ...AJV_OPTIONS, coerceTypes: true });

/** By the schemas themselves, for as long as they are there. */
const validatorCache = new WeakMap<object, ValidateFunction>();

/** @throws InvalidRequestError 400 that names the field */
export function assertParameters(fields: JsonObject, { method, parameters }: DataEndpoint): void {
  if (!parameters) return;
  const validate = validatorCache.get(parameters) ?? (method === 'GET' ? queryAjv : bodyAjv).compile(parameters);
  validatorCache.set(parameters, validate);
  // Texts that were read as numbers stay texts in what is sent.
  if (validate(method === 'GET' ? { ...fields } : fields)) return;
  throw toInvalidRequestError((validate.errors ?? [])[0]);
}

function toInvalidRequestError(error: ErrorObject | undefined): InvalidRequestError {
  const { instancePath = '', params = {}, message = 'is not as it should be', keyword } = error ?? {};
  const missing = keyword === 'required' ? `/${params.missingProperty}` : '';
  const unknown = keyword === 'additionalProperties' ? `/${params.additionalProperty}` : '';
  const field = `${instancePath}${missing}${unknown}`.slice(1).replaceAll('/', '.');
  const problem = missing ? 'is required' : unknown ? 'is not known here' : message;
  return new InvalidRequestError(
    400,
    `${field === '' ? 'The request' : field} ${problem}`,
    field === '' ? null : field,
  );
}
