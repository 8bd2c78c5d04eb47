/** Calls the gateway, which is not trusted: it must never receive unencrypted content of a chat. */

import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { ByteAccumulator } from '#application/messages';
import { ENCAPSULATED_KEY_HEADER, RESPONSE_NONCE_HEADER, type SealedRequest } from '#ehbp';
import { isJsonObject, type JsonObject } from '#kernel';
import { ProxyError, parseErrorBody, parseMoneyDetails, sanitizeForDisplay } from './proxy-error.ts';

export const PRIVATE_MODEL_PREFIX = 'private/';
/** Pattern of a model id, with or without the prefix. All of its characters are safe in a header and in a log. */
export const MODEL_ID_PATTERN = /^[\w.:/-]{1,128}$/;

const MAX_LIST_BYTES = 16 * 1024 * 1024;
/** Attestation bundles have about 17,000 bytes. */
const MAX_BUNDLE_BYTES = 1024 * 1024;
const MAX_HISTORY_BYTES = 256 * 1024;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;
/** For all requests except chats and the history. */
const REQUEST_TIMEOUT_MS = 30_000;
/** A model may reason for a long time before its first token, and an enclave may pause between two tokens. */
const CHAT_TIMEOUT_MS = 15 * 60_000;

/**
 * For the history, which says why a response was interrupted. The caller is waiting for the error. The gateway itself
 * waits up to 2 s until its history includes the request.
 */
const HISTORY_TIMEOUT_MS = 6_000;
/** Between two reads of a history that does not include the request yet. */
const HISTORY_RETRY_MS = 200;
/** The newest entries of the history. They normally include the request that has just ended. */
const HISTORY_PATH = '/queries/history?page_count=20';

/** Codes of errors without a connection: nothing was sent, so nothing was charged. */
const UNSENT_ERROR_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What a reachable gateway did, by the code of the network error. */
const PROBLEM_BY_ERROR_CODE: Readonly<Record<string, string>> = {
  UND_ERR_SOCKET: 'closed the connection',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  UND_ERR_HEADERS_TIMEOUT: 'did not respond in time',
};

/** A model in the gateway's list whose id begins with `private/`. */
export interface PrivateModel {
  /** With the prefix. */
  readonly id: string;
  readonly name: string;
  /** Unix seconds. */
  readonly created: number;
  readonly contextLength?: number;
  /** Maximum number of tokens of a response. */
  readonly maxOutputTokens?: number;
}

/** A response of the gateway whose body has not been read yet. */
export interface GatewayResponse {
  readonly status: number;
  /** Set if the body is encrypted. */
  readonly nonce: string | undefined;
  /** The gateway's id of the request, for its support and its history. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Reads a body of at most `bytes` bytes. @throws ProxyError if it is longer */
  readBody(bytes?: number): Promise<Buffer>;
  readonly body: Readable;
}

interface GatewayRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: Readable;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export class GatewayClient {
  private readonly agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, connections: null, pipelining: 1 });

  constructor(
    readonly address: string,
    private readonly apiKey: string,
  ) {}

  async fetchModels(): Promise<readonly PrivateModel[]> {
    const { data } = await this.fetchJson('/v1/models?type=all', MAX_LIST_BYTES);
    if (!Array.isArray(data))
      throw new ProxyError(502, 'The gateway returned no list of models', { code: 'gateway_error' });
    return data.filter(isJsonObject).flatMap(parsePrivateModel);
  }

  /**
   * Fetches the attestation bundle of a model's enclave.
   * @param model without the prefix
   * @param isRefresh requests a bundle that is at most a second old, instead of 30 seconds
   * @throws ProxyError
   */
  async fetchBundle(model: string, isRefresh: boolean): Promise<unknown> {
    const path = `/private/attestation?model=${encodeURIComponent(PRIVATE_MODEL_PREFIX + model)}`;
    return this.fetchJson(path, MAX_BUNDLE_BYTES, { headers: isRefresh ? { 'cache-control': 'no-cache' } : {} });
  }

  /**
   * Returns the error code of a request from the gateway's history.
   * @returns null if the request has not failed; undefined if the newest entries do not include it, or cannot be loaded
   *   in time
   */
  async findErrorCode(requestId: string, signal: AbortSignal): Promise<unknown> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(HISTORY_TIMEOUT_MS)]);
    try {
      for (;;) {
        const { data } = await this.fetchJson(HISTORY_PATH, MAX_HISTORY_BYTES, {
          headers: this.authHeaders,
          signal: limit,
        });
        const rows = Array.isArray(data) ? data.filter(isJsonObject) : [];
        const row = rows.find(({ request_id }) => request_id === requestId);
        if (row) return row.error_code;
        await delay(HISTORY_RETRY_MS, undefined, { signal: limit });
      }
    } catch {
      return undefined; // the caller's response has failed already, and only lacks the reason
    }
  }

  /** @param model without the prefix @throws ProxyError if no response arrives */
  sendChat(model: string, { encapsulatedKey, frames }: SealedRequest, signal: AbortSignal): Promise<GatewayResponse> {
    return this.send('/private/v1/chat/completions', {
      method: 'POST',
      headers: {
        ...this.authHeaders,
        'content-type': 'application/json',
        // The gateway extends the hold while a stream is generated. Otherwise it holds the maximum price at once.
        accept: 'text/event-stream',
        [ENCAPSULATED_KEY_HEADER]: encapsulatedKey,
        'x-private-model': PRIVATE_MODEL_PREFIX + model,
        'x-query-source': 'api',
      },
      body: Readable.from(frames),
      timeoutMs: CHAT_TIMEOUT_MS,
      signal,
    });
  }

  close(): Promise<void> {
    return this.agent.destroy();
  }

  private get authHeaders() {
    return { authorization: `Bearer ${this.apiKey}` };
  }

  private async fetchJson(
    path: string,
    maxBytes: number,
    {
      headers = {},
      signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }: Partial<Pick<GatewayRequest, 'headers' | 'signal'>> = {},
  ): Promise<JsonObject> {
    const reply = await this.send(path, {
      method: 'GET',
      headers: { accept: 'application/json', ...headers },
      timeoutMs: REQUEST_TIMEOUT_MS,
      signal,
    });
    if (reply.status !== 200) throw await toProxyError(reply);
    const read = reply.readBody(maxBytes).catch((error: unknown) => {
      throw error instanceof ProxyError ? error : this.createUnreachableError(getErrorCode(error), false);
    });
    const body = parseJson(await read);
    if (!isJsonObject(body))
      throw new ProxyError(502, 'The gateway returned a body that is not a JSON object', { code: 'gateway_error' });
    return body;
  }

  private createUnreachableError(code: string, isPaid: boolean): ProxyError {
    const problem = PROBLEM_BY_ERROR_CODE[code];
    const servedHint = problem && isPaid ? '; the request may have been served' : '';
    const message = `The gateway at ${this.address} ${problem ?? 'cannot be reached'}${servedHint} (${code || 'no response'})`;
    return new ProxyError(502, message, {
      code: 'gateway_unreachable',
      isFinal: isPaid && !UNSENT_ERROR_CODES.has(code),
    });
  }

  private async send(path: string, { timeoutMs, ...options }: GatewayRequest): Promise<GatewayResponse> {
    try {
      const { statusCode, headers, body } = await request(this.address + path, {
        ...options,
        dispatcher: this.agent,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      // Without a listener, a body that fails while it is not being read would crash the process.
      body.on('error', () => {});
      const retryAfter = Number(headers['retry-after'] ?? Number.NaN);
      return {
        status: statusCode,
        nonce: toSingleValue(headers[RESPONSE_NONCE_HEADER]),
        requestId: toSingleValue(headers['x-request-id'])?.match(/^[\w-]{1,128}$/)?.[0],
        retryAfterSeconds: Number.isSafeInteger(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
        readBody: (bytes = MAX_ERROR_BODY_BYTES) => readBody(body, bytes),
        body,
      };
    } catch (error) {
      if (options.signal.reason instanceof ProxyError) throw options.signal.reason;
      throw this.createUnreachableError(getErrorCode(error), options.method === 'POST');
    }
  }
}

/**
 * Converts an error response of the gateway. An error status is retained, any other becomes 502. The message is
 * retained as far as it can be displayed. The response may also come from a load balancer in front of the gateway, for
 * example after a timeout. The gateway may then still be serving the request.
 * @param isPaid whether the request can be charged
 */
export async function toProxyError(reply: GatewayResponse, isPaid = false): Promise<ProxyError> {
  const { status, retryAfterSeconds, requestId } = reply;
  if (status < 400 || status > 599) {
    reply.body.destroy();
    const unknown = status < 400 ? 'a redirect, which is not followed' : `the invalid status ${status}`;
    const description = status < 300 ? 'a response that is not encrypted' : unknown;
    return new ProxyError(502, `The gateway sent ${description}`, { code: 'gateway_error', isFinal: status < 300 });
  }
  const body = parseJson(await reply.readBody().catch(() => Buffer.alloc(0))); // an interrupted body has no message
  const { message, ...details } = parseErrorBody(body) ?? { message: `status ${status}` };
  const isFromGateway = isJsonObject(body) && body.statusCode === status && isJsonObject(body.error);
  const money = parseMoneyDetails(body);
  const shortfall =
    money && !message.includes(money.required)
      ? `: ${money.required} USD is required and ${money.affordable} USD is available`
      : '';
  return new ProxyError(
    status,
    `The gateway${isFromGateway ? '' : ', or a proxy in front of it,'} says: ${message}${shortfall}`,
    {
      code: 'gateway_error',
      ...details,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(money ? { money } : {}),
      ...(requestId ? { requestId } : {}),
      isFinal: isPaid && !isFromGateway && status >= 500,
    },
  );
}

/**
 * Parses JSON; returns undefined if it is invalid. The parser's error is dropped, because its message quotes the text.
 */
export function parseJson(text: Buffer | string): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined; // invalid JSON
  }
}

/** Reads a complete body of at most `maxBytes` bytes. @throws ProxyError if it is longer */
export async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const accumulator = new ByteAccumulator();
  for await (const chunk of body) {
    if (accumulator.size + chunk.length > maxBytes)
      throw new ProxyError(502, 'The response is too long', { code: 'answer_too_long', isFinal: true });
    accumulator.add(chunk);
  }
  return accumulator.bytes;
}

function parsePrivateModel({ id, name, created, context_length, top_provider }: JsonObject): readonly PrivateModel[] {
  if (typeof id !== 'string' || !id.startsWith(PRIVATE_MODEL_PREFIX) || !MODEL_ID_PATTERN.test(id)) return [];
  const maxOutput = isJsonObject(top_provider) ? top_provider.max_completion_tokens : undefined;
  return [
    {
      id,
      name: typeof name === 'string' ? sanitizeForDisplay(name) : id,
      created: isPositiveInteger(created) ? created : 0,
      ...(isPositiveInteger(context_length) ? { contextLength: context_length } : {}),
      ...(isPositiveInteger(maxOutput) ? { maxOutputTokens: maxOutput } : {}),
    },
  ];
}

function isPositiveInteger(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function toSingleValue(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}

/** Returns the code of a network error, or an empty text. The message is not used, because it could name hosts. */
function getErrorCode(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? code : '';
}
