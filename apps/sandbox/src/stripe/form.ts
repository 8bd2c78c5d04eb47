/** How Stripe's API is asked, and how it refuses. Facts: its API reference, and what its own library sends. */
import { Refusal } from '../router.ts';

export type Params = { readonly [name: string]: string | Params | undefined };

/** Reads `line_items[0][price_data][currency]=usd` as what it stands for; lists are objects with numbers as names. */
export function paramsIn(encoded: string): Params {
  const params: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(encoded)) {
    const path = name.replaceAll(']', '').split('[');
    const last = path.pop() ?? '';
    let at = params;
    for (const step of path) {
      at[step] ??= Object.create(null);
      at = at[step] as Record<string, unknown>;
      if (typeof at !== 'object') throw invalid(`Invalid ${name}`, name);
    }
    at[last] = value;
  }
  return params as Params;
}

/** The members of a list, in order. */
export function listIn(value: Params[string]): readonly (string | Params)[] {
  return typeof value === 'object' ? Object.values(value).filter((each) => each !== undefined) : [];
}

export function textIn(params: Params | undefined, name: string): string | undefined {
  const value = params?.[name];
  return typeof value === 'string' ? value : undefined;
}

export function partIn(params: Params | undefined, name: string): Params | undefined {
  const value = params?.[name];
  return typeof value === 'object' ? value : undefined;
}

/** A whole number above 0. */
export function countIn(params: Params | undefined, name: string): number {
  const value = Number(textIn(params, name));
  if (!Number.isSafeInteger(value) || value <= 0) throw invalid(`Invalid integer: ${textIn(params, name)}`, name);
  return value;
}

export function invalid(message: string, param?: string): Refusal {
  return refusal(400, { type: 'invalid_request_error', message, ...(param === undefined ? {} : { param }) });
}

export function missing(what: string, id: string): Refusal {
  const message = `No such ${what}: '${id}'`;
  return refusal(404, { type: 'invalid_request_error', code: 'resource_missing', message, param: 'id' });
}

interface StripeError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string;
}

export function refusal(status: number, error: StripeError): Refusal {
  return new Refusal(status, { error });
}
