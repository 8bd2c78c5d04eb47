/** A data provider: where its key is sent, the format of its errors, and its lookups by route. */

import type { IncomingHttpHeaders } from 'node:http';
import { type JsonObject } from '#kernel';
import type { SandboxFile } from '../media/sandbox-file.ts';
import type { HttpError } from '../router.ts';
import type { Seed } from './generated-data.ts';

export interface KeyLocation {
  readonly in: 'header' | 'query';
  readonly name: string;
  /** Text before the key, such as `Bearer `. */
  readonly prefix?: string;
}
export type LookupPath = `${'GET' | 'POST'} /${string}`;

export interface DataVendor {
  /** The name on the bill and in `at` of a directive, and the first segment of the provider's paths in the sandbox. */
  readonly name: string;
  /** A request needs a key in one of these places. */
  readonly keys: readonly KeyLocation[];
  /** Creates an error in the provider's format. */
  createError(status: number, message: string): HttpError;
  /** Creates the error for a missing or invalid key; default is `createError` with status 401. */
  createKeyError?(missing: boolean): HttpError;
  /**
   * A directive in a request applies only if its `at` is this provider. Set for a provider that also serves searches of
   * chats, whose directives are meant for the model.
   */
  requiresNamedDirective?: boolean;
  /** A free call that requires a valid key. */
  readonly keyCheck?: { readonly path: string; readonly body: object };
  /** One part of a path may be a `{name}`. */
  readonly lookups: Readonly<Record<LookupPath, Lookup>>;
}

export interface Lookup {
  /** USD per call, or per result with `per`. */
  readonly usd: string | ((request: DataVendorRequest) => string);
  readonly per?: 'result';
  /** Bills a call without results as well. */
  readonly billsEmptyResults?: boolean;
  /** Bills a call with status 404 as well. */
  readonly billsNotFound?: boolean;
  /** @throws HttpError if the request is invalid or, for some lookups, nothing is found */
  execute(request: DataVendorRequest): DataVendorResult;
}

export interface DataVendorRequest {
  /** Fields of the body, or of the query of a GET request. */
  readonly fields: JsonObject;
  readonly headers: IncomingHttpHeaders;
  /** The value of `{name}` in the path. */
  readonly pathParameter: string;
  /** Equal for requests to the same provider with the same fields and path parameter. */
  readonly seed: Seed;
  /** Returns the number of results: 0 with the fault `empty`, else that of the directive, else the default. */
  count(defaultCount: number): number;
}

export interface DataVendorResult {
  /** A JSON value. If `file` is set, the file is sent instead. */
  readonly body: object;
  readonly file?: SandboxFile;
  /** Number of results, for the bill. */
  readonly results: number;
}

/** Generates this many results, each from its own seed. */
export function generateResults<T>(
  { seed }: DataVendorRequest,
  count: number,
  generate: (seed: Seed, index: number) => T,
): readonly T[] {
  return Array.from({ length: count }, (_, i) => generate(seed.branch(i), i));
}

export function findText(fields: JsonObject, name: string): string | undefined {
  const value = fields[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a number from a body, or from the text of a query parameter. */
export function findNumber(fields: JsonObject, name: string): number | undefined {
  const value = fields[name];
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}
