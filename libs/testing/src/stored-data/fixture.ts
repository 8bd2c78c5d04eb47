/** Reads what clients have according to the fixture of stored data, and sends their requests again. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Contains clients.json, tables.json, tables/, files/ and backup/. */
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

/** Data of clients and operators. */
export interface ClientData {
  /** Time at which the tables were written: milliseconds since 1970. */
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
  /** Requests that are not sent yet, each with the proof of payment of an unused challenge. */
  readonly proofs: readonly Exchange[];
  readonly continuations: readonly Continuation[];
  /** Requests that providers must receive for the video jobs that were not yet submitted, sorted by path. */
  readonly pendingVideos: readonly unknown[];
  /** Id of the hold of a chat that was still running when the tables were written. */
  readonly openHold: string;
}

export function readClientData(): ClientData {
  return JSON.parse(readFileSync(path.join(STORED_DATA_DIR, 'clients.json'), 'utf8'));
}

/** Sends the request of an exchange, with another body if one is given. Returns the exchange with its response. */
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

/** Whether a request submits a video job for the first time: the webhook URL contains the number of the submission. */
export function isFirstSubmission({ path: route }: { readonly path: string }): boolean {
  return /\.1\.[\w-]{43}$/.test(route);
}
