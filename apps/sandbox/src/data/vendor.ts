/** What one vendor of data is: where its key must stand, how it words a refusal, and a table of what it looks up. */

import type { IncomingHttpHeaders } from 'node:http';
import { type JsonObject } from '#kernel';
import type { SandboxFile } from '../media/sandbox-file.ts';
import type { HttpError } from '../router.ts';
import type { Seed } from './generated-data.ts';

export interface KeyLocation {
  readonly in: 'header' | 'query';
  readonly name: string;
  /** What stands before it, such as `Bearer `. */
  readonly prefix?: string;
}
export type LookupPath = `${'GET' | 'POST'} /${string}`;

export interface DataVendor {
  /** On the bill, in `at` of a directive, and the first part of its paths here. */
  readonly name: string;
  /** Any of these will do. */
  readonly keys: readonly KeyLocation[];
  /** The way in which it says what is wrong. */
  createError(status: number, message: string): HttpError;
  /** How it refuses a key, where that is no 401 in the same way. */
  createKeyError?(missing: boolean): HttpError;
  /** It is asked for other things too, which a directive without `at` is meant for. */
  requiresNamedDirective?: boolean;
  /** A part of a path may be a `{name}`. */
  readonly lookups: Readonly<Record<LookupPath, Lookup>>;
}

export interface Lookup {
  /** USD, for a call unless it is `per` result. */
  readonly usd: string | ((request: DataVendorRequest) => string);
  readonly per?: 'result';
  /** A call that finds nothing is billed all the same. */
  readonly billsEmptyResults?: boolean;
  /** So is one that it answers with 404. */
  readonly billsNotFound?: boolean;
  /** @throws HttpError */
  execute(request: DataVendorRequest): DataVendorResult;
}

export interface DataVendorRequest {
  /** Of the body; of the query where there is none. */
  readonly fields: JsonObject;
  readonly headers: IncomingHttpHeaders;
  /** What the path has at its `{name}`. */
  readonly pathParameter: string;
  /** The same for the same request. */
  readonly seed: Seed;
  /** How much is to be found, where the request has no better idea: what a directive says comes first. */
  count(defaultCount: number): number;
}

export interface DataVendorResult {
  /** A JSON value, or a file. */
  readonly body: object;
  readonly file?: SandboxFile;
  /** How much was found, for the bill. */
  readonly results: number;
}

/** What was found of so many, each with a seed of its own. */
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

/** A number in a body, or a text in a query that says one. */
export function findNumber(fields: JsonObject, name: string): number | undefined {
  const value = fields[name];
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}
