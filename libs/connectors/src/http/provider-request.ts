/** Requests of any kind to a provider, in addition to those that `JsonHttpClient` sends. */
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
  /** A plain object is sent as JSON; each `Base64File` in it is replaced by its file in base64. */
  readonly body?: object | Uint8Array | Readable | AsyncIterable<Uint8Array> | FormData | undefined;
  readonly signal: AbortSignal;
  /** The provider completes and invoices the request even if the gateway disconnects. */
  readonly isBilledAfterDisconnect?: true;
  /** The provider invoices the request whatever its method; by default only POST requests count as invoiced. */
  readonly invoiced?: true;
  /** Converts a response with a status of 300 or higher. */
  mapErrorResponse(status: number, headers: ResponseHeaders, text: string, body: Uint8Array): UpstreamError;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ProviderHttpResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** Returns the complete body. @throws UpstreamError if the body ends early or is longer than `maxBytes` bytes */
  bytes(maxBytes?: number): Promise<Buffer>;
  /** @throws UpstreamError if the body ends early, is longer than `maxBytes` bytes or is not JSON */
  json(maxBytes?: number): Promise<unknown>;
  /** Yields the body while it arrives. @throws UpstreamError if the body ends early */
  chunks(): AsyncIterable<Uint8Array>;
  /** Returns the trailers; empty until the body has ended. */
  trailers(): ResponseHeaders;
}

/**
 * Sends a request and resolves with the head of its response.
 * @throws UpstreamError. Without `status` it is unknown whether the provider accepted the request, unless `isUnsent` is
 * set. With `deliveredText` or `hasOpenCost` the provider may have accepted the request, and may invoice it.
 */
export async function sendProviderRequest(
  url: string,
  dispatcher: Dispatcher,
  options: ProviderHttpRequest,
): Promise<ProviderHttpResponse> {
  const { method, headers, body, signal, isBilledAfterDisconnect, mapErrorResponse } = options;
  let isStarted = false;
  const isBilled = isInvoiced(options);
  const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
  const json = isJson ? createJsonBody(body) : undefined;
  const response = await request(url, {
    dispatcher: observeStart(dispatcher, () => {
      isStarted = true;
    }),
    method,
    headers: { accept: '*/*', 'user-agent': USER_AGENT, ...(json ? toJsonHeaders(json) : {}), ...headers },
    body: (json ? json.body : body) as never,
    signal,
    // A provider may be idle until its response is complete, so only `signal` limits the time to its start.
    headersTimeout: 0,
  }).catch((error: unknown) => {
    if (!isStarted) throw toRequestError(error, signal, UNREACHED).withDetails({ isUnsent: true });
    throw isBilled
      ? toLostResponseError(error, signal, NO_RESPONSE, isBilledAfterDisconnect)
      : toRequestError(error, signal, UNREACHED);
  });
  const { statusCode: status } = response;
  const toBodyError = isBilled ? toLostResponseError : toRequestError;
  const chunks = () =>
    readBody(response.body, (error) => toBodyError(error, signal, INTERRUPTED, isBilledAfterDisconnect));
  if (status >= 300) {
    // Without its body, an error response is mapped by its status.
    const errorBody = await readFirstBytes(MAX_ERROR_BYTES, chunks()).catch(() => Buffer.alloc(0));
    throw mapErrorResponse(status, response.headers, errorBody.toString(), errorBody);
  }
  const bytes = async (maxBytes = MAX_RESPONSE_BYTES) => {
    const all = await readFirstBytes(maxBytes + 1, chunks());
    if (all.length > maxBytes)
      throw new UpstreamError('answer_too_long', 'The response of the provider is too long', {
        status,
        hasOpenCost: isBilled,
      });
    return all;
  };
  const readJson = async (maxBytes?: number) => {
    const text = (await bytes(maxBytes)).toString();
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw toBodyError(cause, signal, ['upstream_error', 'The provider sent a response that is not JSON']);
    }
  };
  const trailers = () => response.trailers;
  return { status, headers: response.headers, bytes, json: readJson, chunks, trailers };
}

/** Whether the provider invoices a request. */
export function isInvoiced({ method, invoiced }: Pick<ProviderHttpRequest, 'method' | 'invoiced'>): boolean {
  return invoiced ?? method === 'POST';
}

/**
 * Calls `onStart` when the request has a connection and is about to be written to it. Until then it certainly does not
 * reach the provider; afterwards no error shows whether it did. undici replaces a connection that it knows as closed
 * before it writes, and repeats no request that it has started to write.
 */
export function observeStart(dispatcher: Dispatcher, onStart: () => void): Dispatcher {
  return dispatcher.compose(
    (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart: (controller, context) => {
          handler.onRequestStart?.(controller, context);
          if (!controller.aborted) onStart();
        },
        onResponseStart: (...args) => handler.onResponseStart?.(...args),
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      }),
  );
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

/** Returns at most the first `limit` bytes. */
async function readFirstBytes(limit: number, chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const accumulator = new ByteAccumulator();
  for await (const chunk of chunks) {
    accumulator.add(chunk.subarray(0, limit - accumulator.size));
    if (accumulator.size >= limit) break;
  }
  return accumulator.bytes;
}

type FailureDescription = readonly [code: FailureCode, message: string];

const UNREACHED: FailureDescription = ['upstream_unavailable', 'The provider cannot be reached'];
const NO_RESPONSE: FailureDescription = ['upstream_unavailable', 'The provider did not respond'];
const INTERRUPTED: FailureDescription = ['upstream_error', 'The provider ended the response early'];

/**
 * Converts an error of a request that may have been sent: the provider may have completed it and may invoice it. If the
 * gateway aborted the request, providers without `isBilledAfterDisconnect` stop. Whether one stops before it invoices
 * the request is unknown.
 */
function toLostResponseError(
  error: unknown,
  signal: AbortSignal,
  description: FailureDescription,
  isBilledAfterDisconnect = false,
): UpstreamError {
  const failure = toRequestError(error, signal, description);
  return failure.withDetails(
    signal.aborted && !isBilledAfterDisconnect ? { hasOpenCost: true } : { deliveredText: '' },
  );
}

function toRequestError(error: unknown, signal: AbortSignal, [code, message]: FailureDescription): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return new UpstreamError('timeout', 'The provider took too long to respond', { cause: error });
  return new UpstreamError(code, message, { cause: error });
}
