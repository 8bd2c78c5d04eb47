/**
 * Parses Stripe's form parameters and creates Stripe's errors. Sources: the API reference, and the requests of Stripe's
 * library.
 */
import { HttpError } from '../router.ts';

export type Params = { readonly [name: string]: string | Params | undefined };

/**
 * Parses `line_items[0][price_data][currency]=usd` to nested objects. A list becomes an object whose property names are
 * its indices.
 */
export function parseParams(encoded: string): Params {
  const params: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(encoded)) {
    const path = name.replaceAll(']', '').split('[');
    const last = path.pop() ?? '';
    let at = params;
    for (const step of path) {
      at[step] ??= Object.create(null);
      at = at[step] as Record<string, unknown>;
      if (typeof at !== 'object') throw invalidRequestError(`Invalid ${name}`, name);
    }
    at[last] = value;
  }
  return params as Params;
}

/** Returns the elements of a list in order. */
export function toList(value: Params[string]): readonly (string | Params)[] {
  return typeof value === 'object' ? Object.values(value).filter((item) => item !== undefined) : [];
}

export function findText(params: Params | undefined, name: string): string | undefined {
  const value = params?.[name];
  return typeof value === 'string' ? value : undefined;
}

export function findParams(params: Params | undefined, name: string): Params | undefined {
  const value = params?.[name];
  return typeof value === 'object' ? value : undefined;
}

/** Parses an integer above 0. @throws HttpError 400 if the parameter is missing or anything else */
export function parseCount(params: Params | undefined, name: string): number {
  const value = Number(findText(params, name));
  if (!Number.isSafeInteger(value) || value <= 0)
    throw invalidRequestError(`Invalid integer: ${findText(params, name)}`, name);
  return value;
}

export function invalidRequestError(message: string, param?: string): HttpError {
  return createError(400, { type: 'invalid_request_error', message, ...(param === undefined ? {} : { param }) });
}

export function missingResourceError(what: string, id: string): HttpError {
  const message = `No such ${what}: '${id}'`;
  return createError(404, { type: 'invalid_request_error', code: 'resource_missing', message, param: 'id' });
}

interface StripeError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string;
}

export function createError(status: number, error: StripeError): HttpError {
  return new HttpError(status, { error });
}
