/** Reads the fixture of stored data: what clients hold, and what a database of the program that wrote it has. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Has clients.json, tables.json, tables/, files/ and backup/. */
export const STORED_DATA_DIR = path.resolve(import.meta.dirname, '../fixtures/stored-data');

/** A request and its response. Bodies are bytes, each written as one character. */
export interface Exchange {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseBody: string;
}

/** A request, and what providers received because of it. */
export interface Continuation {
  readonly exchange: Exchange;
  readonly upstream: readonly unknown[];
}

/** What clients and operators hold. */
export interface ClientData {
  /** Time of the program when the tables were written: milliseconds since 1970. */
  readonly time: number;
  readonly masterKey: string;
  readonly publicBaseUrl: string;
  readonly account: { readonly creditId: string; readonly apiKey: string; readonly stream: string };
  /** All API keys of the account that are not revoked. */
  readonly apiKeys: readonly string[];
  readonly walletUrl: string;
  /** Requests under an Idempotency-Key or a proof of payment, and the responses to their repetition. */
  readonly replays: readonly Exchange[];
  /** Requests that change nothing. */
  readonly reads: readonly Exchange[];
  /** Requests that rate limits count. */
  readonly counted: readonly Exchange[];
  /** Paid challenges that are not used yet: each pays for one request. */
  readonly proofs: readonly Exchange[];
  readonly continuations: readonly Continuation[];
  /** What providers are to receive for the video jobs that none of them has, by their paths. */
  readonly pendingVideos: readonly unknown[];
  /** Id of the hold of a chat that never ends. */
  readonly openHold: string;
}

export function readClientData(): ClientData {
  return JSON.parse(readFileSync(path.join(STORED_DATA_DIR, 'clients.json'), 'utf8'));
}

/** Sends the request of an exchange again. */
export async function resendRequest(
  { name, method, path: route, headers, body }: Exchange,
  api: string,
  changedBody = body,
): Promise<Exchange> {
  const bytes = changedBody === undefined ? {} : { body: Buffer.from(changedBody, 'latin1') };
  const response = await fetch(`${api}${route}`, { method, headers, ...bytes });
  const responseBody = Buffer.from(await response.arrayBuffer()).toString('latin1');
  const responseHeaders = Object.fromEntries(
    [...response.headers].filter(([headerName]) => !VOLATILE_HEADERS.has(headerName)),
  );
  const request = { name, method, path: route, headers, ...(body === undefined ? {} : { body }) };
  return { ...request, status: response.status, responseHeaders, responseBody };
}

const VOLATILE_HEADERS: ReadonlySet<string> = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/** Whether a provider receives a video job for the first time: its address for a web hook says so. */
export function isFirstSubmission({ path: route }: { readonly path: string }): boolean {
  return /\.1\.[\w-]{43}$/.test(route);
}
