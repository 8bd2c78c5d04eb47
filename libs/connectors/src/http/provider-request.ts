/** One request of any kind to a vendor: for what is not JSON in one piece or a stream of events. */
import type { Readable } from 'node:stream';
import { type Dispatcher, errors, type FormData, request } from 'undici';
import { ByteAccumulator, type FailureCode, UpstreamError } from '#application';
import { MAX_RESPONSE_BYTES } from './buffered-body.ts';
import { type JsonBody, jsonBody } from './json-with-files.ts';
import { USER_AGENT } from './user-agent.ts';

const MAX_REFUSAL_BYTES = 64 * 1024;

export interface ProviderHttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  /** An object goes as JSON, with a `Base64` wherever a file is to stand in it. */
  readonly body?: object | Uint8Array | Readable | AsyncIterable<Uint8Array> | FormData | undefined;
  readonly signal: AbortSignal;
  /** It is made, and invoiced, though we hang up. */
  readonly billsOn?: true;
  /** What a GET asks for is invoiced as well. */
  readonly invoiced?: true;
  /** What an answer with a status from 300 on means. */
  refusalOf(status: number, headers: ResponseHeaders, text: string, body: Uint8Array): UpstreamError;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ProviderHttpResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** All of it, at once. @throws UpstreamError when it breaks off, or is longer than `most` bytes */
  bytes(most?: number): Promise<Buffer>;
  /** @throws UpstreamError when it breaks off, or is no JSON */
  json(): Promise<unknown>;
  /** As it comes. It throws an UpstreamError when it breaks off. */
  pieces(): AsyncIterable<Uint8Array>;
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
  { method, headers, body, signal, billsOn, invoiced, refusalOf }: ProviderHttpRequest,
): Promise<ProviderHttpResponse> {
  const isInvoiced = invoiced ?? method === 'POST';
  const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
  const json = isJson ? jsonBody(body) : undefined;
  const answer = await request(url, {
    dispatcher,
    method,
    headers: { accept: '*/*', 'user-agent': USER_AGENT, ...(json ? jsonHeaders(json) : {}), ...headers },
    body: (json ? json.body : body) as never,
    signal,
    // Such an answer is silent until it is complete: only its signal bounds it.
    headersTimeout: 0,
  }).catch((error: unknown) => {
    if (isNotConnected(error)) throw failureOf(error, signal, UNREACHED).withDetails({ isUnsent: true });
    throw isInvoiced ? lost(error, signal, LOST, billsOn) : failureOf(error, signal, UNREACHED);
  });
  const { statusCode: status } = answer;
  const broken = isInvoiced ? lost : failureOf;
  const pieces = () => readable(answer.body, (error) => broken(error, signal, BROKEN, billsOn));
  if (status >= 300) {
    const refusal = await atMost(MAX_REFUSAL_BYTES, pieces()).catch(() => Buffer.alloc(0));
    throw refusalOf(status, answer.headers, refusal.toString(), refusal);
  }
  const bytes = async (most = MAX_RESPONSE_BYTES) => {
    const all = await atMost(most + 1, pieces());
    if (all.length > most) throw new UpstreamError('answer_too_long', 'The answer is too long', { status });
    return all;
  };
  const parsed = async () => {
    const text = (await bytes()).toString();
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw broken(cause, signal, ['upstream_error', 'The upstream answered with what is no JSON']);
    }
  };
  const trailers = () => answer.trailers;
  return { status, headers: answer.headers, bytes, json: parsed, pieces, trailers };
}

function jsonHeaders({ length }: JsonBody): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', 'content-length': String(length) };
}

async function* readable(body: Readable, failure: (error: unknown) => UpstreamError): AsyncIterable<Uint8Array> {
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw failure(error);
  }
}

/** The first bytes of it, no more than so many. */
async function atMost(limit: number, pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const taken = new ByteAccumulator();
  for await (const piece of pieces) {
    taken.add(piece.subarray(0, limit - taken.size));
    if (taken.size >= limit) break;
  }
  return taken.bytes;
}

type Said = readonly [code: FailureCode, message: string];

const UNREACHED: Said = ['upstream_unavailable', 'The upstream cannot be reached'];
const LOST: Said = ['upstream_unavailable', 'The upstream gave no answer'];
const BROKEN: Said = ['upstream_error', 'The upstream broke off the answer'];

/** The request was not sent. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

function isNotConnected(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return NOT_CONNECTED.has(code) || NOT_CONNECTED.has(cause?.code);
}

/** What was asked for may have been made, and be invoiced; unless it was ended from here, which many vendors notice. */
function lost(error: unknown, signal: AbortSignal, said: Said, billsOn = false): UpstreamError {
  const failure = failureOf(error, signal, said);
  return signal.aborted && !billsOn ? failure : failure.withDetails({ deliveredText: '' });
}

function failureOf(error: unknown, signal: AbortSignal, [code, message]: Said): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted && signal.reason instanceof UpstreamError) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return new UpstreamError('timeout', 'The upstream took too long', { cause: error });
  return new UpstreamError(code, message, { cause: error });
}
