/** One request of any kind to a vendor: for what is not JSON in one piece or a stream of events. */
import type { Readable } from 'node:stream';
import { type Dispatcher, errors, type FormData, request } from 'undici';
import { ByteAccumulator, type FailureCode, UpstreamError } from '#application';
import { MAX_RESPONSE_BYTES } from './buffered-body.ts';
import { createJsonBody, type JsonBody } from './json-with-files.ts';
import { USER_AGENT } from './user-agent.ts';

const MAX_ERROR_BYTES = 64 * 1024;

export interface ProviderHttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  /** An object goes as JSON, with a `Base64File` wherever a file is to stand in it. */
  readonly body?: object | Uint8Array | Readable | AsyncIterable<Uint8Array> | FormData | undefined;
  readonly signal: AbortSignal;
  /** It is made, and invoiced, though we hang up. */
  readonly isBilledAfterDisconnect?: true;
  /** What a GET asks for is invoiced as well. */
  readonly invoiced?: true;
  /** What an answer with a status from 300 on means. */
  mapErrorResponse(status: number, headers: ResponseHeaders, text: string, body: Uint8Array): UpstreamError;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ProviderHttpResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** All of it, at once. @throws UpstreamError when it breaks off, or is longer than `maxBytes` bytes */
  bytes(maxBytes?: number): Promise<Buffer>;
  /** @throws UpstreamError when it breaks off, or is no JSON */
  json(): Promise<unknown>;
  /** As it comes. It throws an UpstreamError when it breaks off. */
  chunks(): AsyncIterable<Uint8Array>;
  /** What stands behind the answer; nothing before it has ended. */
  trailers(): ResponseHeaders;
}

/**
 * @throws UpstreamError; one without a `status` leaves it open whether the vendor has taken the request, unless it was
 * `isUnsent`, and one with `deliveredText` says that it has been sent, so that what it asked for may be invoiced
 */
export async function sendProviderRequest(
  url: string,
  dispatcher: Dispatcher,
  { method, headers, body, signal, isBilledAfterDisconnect, invoiced, mapErrorResponse }: ProviderHttpRequest,
): Promise<ProviderHttpResponse> {
  const isInvoiced = invoiced ?? method === 'POST';
  const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
  const json = isJson ? createJsonBody(body) : undefined;
  const response = await request(url, {
    dispatcher,
    method,
    headers: { accept: '*/*', 'user-agent': USER_AGENT, ...(json ? toJsonHeaders(json) : {}), ...headers },
    body: (json ? json.body : body) as never,
    signal,
    // Such an answer is silent until it is complete: only its signal bounds it.
    headersTimeout: 0,
  }).catch((error: unknown) => {
    if (isConnectError(error)) throw toRequestError(error, signal, UNREACHED).withDetails({ isUnsent: true });
    throw isInvoiced
      ? toLostResponseError(error, signal, NO_RESPONSE, isBilledAfterDisconnect)
      : toRequestError(error, signal, UNREACHED);
  });
  const { statusCode: status } = response;
  const toBodyError = isInvoiced ? toLostResponseError : toRequestError;
  const chunks = () =>
    readBody(response.body, (error) => toBodyError(error, signal, INTERRUPTED, isBilledAfterDisconnect));
  if (status >= 300) {
    const errorBody = await readFirstBytes(MAX_ERROR_BYTES, chunks()).catch(() => Buffer.alloc(0));
    throw mapErrorResponse(status, response.headers, errorBody.toString(), errorBody);
  }
  const bytes = async (maxBytes = MAX_RESPONSE_BYTES) => {
    const all = await readFirstBytes(maxBytes + 1, chunks());
    if (all.length > maxBytes) throw new UpstreamError('answer_too_long', 'The answer is too long', { status });
    return all;
  };
  const readJson = async () => {
    const text = (await bytes()).toString();
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw toBodyError(cause, signal, ['upstream_error', 'The upstream answered with what is no JSON']);
    }
  };
  const trailers = () => response.trailers;
  return { status, headers: response.headers, bytes, json: readJson, chunks, trailers };
}

function toJsonHeaders({ length }: JsonBody): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', 'content-length': String(length) };
}

async function* readBody(body: Readable, toError: (error: unknown) => UpstreamError): AsyncIterable<Uint8Array> {
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw toError(error);
  }
}

/** The first bytes of it, no more than so many. */
async function readFirstBytes(limit: number, chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const accumulator = new ByteAccumulator();
  for await (const chunk of chunks) {
    accumulator.add(chunk.subarray(0, limit - accumulator.size));
    if (accumulator.size >= limit) break;
  }
  return accumulator.bytes;
}

type FailureDescription = readonly [code: FailureCode, message: string];

const UNREACHED: FailureDescription = ['upstream_unavailable', 'The upstream cannot be reached'];
const NO_RESPONSE: FailureDescription = ['upstream_unavailable', 'The upstream gave no answer'];
const INTERRUPTED: FailureDescription = ['upstream_error', 'The upstream broke off the answer'];

/** The request was not sent. */
const CONNECT_ERROR_CODES: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

function isConnectError(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return CONNECT_ERROR_CODES.has(code) || CONNECT_ERROR_CODES.has(cause?.code);
}

/** What was asked for may have been made, and be invoiced; unless it was ended from here, which many vendors notice. */
function toLostResponseError(
  error: unknown,
  signal: AbortSignal,
  description: FailureDescription,
  isBilledAfterDisconnect = false,
): UpstreamError {
  const failure = toRequestError(error, signal, description);
  return signal.aborted && !isBilledAfterDisconnect ? failure : failure.withDetails({ deliveredText: '' });
}

function toRequestError(error: unknown, signal: AbortSignal, [code, message]: FailureDescription): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return new UpstreamError('timeout', 'The upstream took too long', { cause: error });
  return new UpstreamError(code, message, { cause: error });
}
