/** One request of any kind to a vendor: for what is not JSON in one piece or a stream of events. */
import type { Readable } from 'node:stream';
import { type Dispatcher, errors, type FormData, request } from 'undici';
import { UpstreamFailure } from '#application';

/** A result in JSON, with pictures in base64, is not longer; files are fetched on their own. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;

export interface VendorRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  /** An object goes as JSON. */
  readonly body?: object | Uint8Array | Readable | FormData | undefined;
  readonly signal: AbortSignal;
  /** What an answer with a status from 300 on means. */
  refusalOf(status: number, headers: AnswerHeaders, body: string): UpstreamFailure;
}

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface VendorAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** All of it, at once. @throws UpstreamFailure when it breaks off, or is too long */
  bytes(): Promise<Buffer>;
  /** @throws UpstreamFailure when it breaks off, or is no JSON */
  json(): Promise<unknown>;
  /** As it comes. It throws an UpstreamFailure when it breaks off. */
  pieces(): AsyncIterable<Uint8Array>;
}

/** @throws UpstreamFailure; one without a `status` leaves it open whether the vendor has taken the request */
export async function vendorRequest(
  url: string,
  dispatcher: Dispatcher,
  { method, headers, body, signal, refusalOf }: VendorRequest,
): Promise<VendorAnswer> {
  const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
  const answer = await request(url, {
    dispatcher,
    method,
    headers: isJson ? { 'content-type': 'application/json', ...headers } : headers,
    body: (isJson ? JSON.stringify(body) : body) as never,
    signal,
    // Such an answer is silent until it is complete: only its signal bounds it.
    headersTimeout: 0,
  }).catch((error: unknown) => {
    throw failureOf(error, signal, false);
  });
  const { statusCode: status } = answer;
  const pieces = () => readable(answer.body, signal);
  if (status >= 300) throw refusalOf(status, answer.headers, (await atMost(MAX_REFUSAL_BYTES, pieces())).toString());
  const bytes = async () => {
    const all = await atMost(MAX_ANSWER_BYTES + 1, pieces());
    if (all.length > MAX_ANSWER_BYTES)
      throw new UpstreamFailure('upstream_error', 'The answer is too long', { status });
    return all;
  };
  const json = async () => {
    const text = (await bytes()).toString();
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw new UpstreamFailure('upstream_error', 'The upstream answered with what is no JSON', { cause });
    }
  };
  return { status, headers: answer.headers, bytes, json, pieces };
}

async function* readable(body: Readable, signal: AbortSignal): AsyncIterable<Uint8Array> {
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw failureOf(error, signal, true);
  }
}

/** The first bytes of it, no more than so many. */
async function atMost(limit: number, pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const taken: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    taken.push(piece.subarray(0, limit - size));
    size += piece.length;
    if (size >= limit) break;
  }
  return Buffer.concat(taken);
}

function failureOf(error: unknown, signal: AbortSignal, begun: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (signal.aborted && signal.reason instanceof UpstreamFailure) return signal.reason;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return new UpstreamFailure('timeout', 'The upstream took too long', { cause: error });
  return begun
    ? new UpstreamFailure('upstream_error', 'The upstream broke off the answer', { cause: error })
    : new UpstreamFailure('upstream_unavailable', 'The upstream cannot be reached', { cause: error });
}
