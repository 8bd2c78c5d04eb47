/** What the proxy asks of the gateway, which is not trusted with anything that is said. */

import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { ByteAccumulator } from '#application/messages';
import { ENCAPSULATED_KEY_HEADER, RESPONSE_NONCE_HEADER, type SealedRequest } from '#ehbp';
import { isJsonObject, type JsonObject } from '#kernel';
import { ProxyError, parseErrorBody, parseMoneyDetails, sanitizeForDisplay } from './proxy-error.ts';

export const PRIVATE_MODEL_PREFIX = 'private/';
/** Of a model, without the prefix: what can stand in a header, and in a log. */
export const MODEL_ID_PATTERN = /^[\w.:/-]{1,128}$/;

const MAX_LIST_BYTES = 16 * 1024 * 1024;
/** An attestation bundle has some 17,000. */
const MAX_BUNDLE_BYTES = 1024 * 1024;
const MAX_HISTORY_BYTES = 256 * 1024;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;
/** For what is no answer of a model. */
const REQUEST_TIMEOUT_MS = 30_000;
/** A model may think for long before its first word, and an enclave between two of them. */
const CHAT_TIMEOUT_MS = 15 * 60_000;

/** For why an answer broke off, whose caller waits for no more of it. */
const HISTORY_TIMEOUT_MS = 1_500;
/** The newest of the history, among them what has just ended. */
const HISTORY_PATH = '/queries/history?page_count=20';

/** There was no connection, so nothing was paid. */
const UNSENT_ERROR_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What a gateway does that is there, in the words of the network. */
const PROBLEM_BY_ERROR_CODE: Readonly<Record<string, string>> = {
  UND_ERR_SOCKET: 'broke the connection',
  ECONNRESET: 'broke the connection',
  EPIPE: 'broke the connection',
  UND_ERR_HEADERS_TIMEOUT: 'did not answer in time',
};

/** A model of the gateway's list whose id begins with `private/`. */
export interface PrivateModel {
  /** With the prefix. */
  readonly id: string;
  readonly name: string;
  /** Unix seconds. */
  readonly created: number;
  readonly contextLength?: number;
  /** The most tokens of an answer. */
  readonly maxOutputTokens?: number;
}

/** An answer to a sealed request. */
export interface GatewayResponse {
  readonly status: number;
  /** It is encrypted where there is one. */
  readonly nonce: string | undefined;
  /** The gateway's id of the request, for its support. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Of at most `bytes`. @throws ProxyError for a longer one */
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
    if (!Array.isArray(data)) throw new ProxyError(502, 'The gateway has no list of models', { code: 'gateway_error' });
    return data.filter(isJsonObject).flatMap(parsePrivateModel);
  }

  /** What the enclave of a model shows of itself. @param model without the prefix. @param isRefresh now, not half a minute ago */
  async fetchBundle(model: string, isRefresh: boolean): Promise<unknown> {
    const path = `/private/attestation?model=${encodeURIComponent(PRIVATE_MODEL_PREFIX + model)}`;
    return this.fetchJson(path, MAX_BUNDLE_BYTES, { headers: isRefresh ? { 'cache-control': 'no-cache' } : {} });
  }

  /** What the gateway's history says of why a request has failed; undefined where it does not say that soon. */
  async findErrorCode(requestId: string, signal: AbortSignal): Promise<unknown> {
    try {
      const { data } = await this.fetchJson(HISTORY_PATH, MAX_HISTORY_BYTES, {
        headers: this.authHeaders,
        signal: AbortSignal.any([signal, AbortSignal.timeout(HISTORY_TIMEOUT_MS)]),
      });
      const rows = Array.isArray(data) ? data.filter(isJsonObject) : [];
      return rows.find(({ request_id }) => request_id === requestId)?.error_code;
    } catch {
      return undefined;
    }
  }

  /** @param model without the prefix. @throws ProxyError when the gateway cannot be reached */
  sendChat(model: string, { encapsulatedKey, frames }: SealedRequest, signal: AbortSignal): Promise<GatewayResponse> {
    return this.send('/private/v1/chat/completions', {
      method: 'POST',
      headers: {
        ...this.authHeaders,
        'content-type': 'application/json',
        // What comes as it is made is held for as it grows; anything else for the longest that there is.
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
      throw new ProxyError(502, 'The gateway answered with something that is not JSON', { code: 'gateway_error' });
    return body;
  }

  private createUnreachableError(code: string, isPaid: boolean): ProxyError {
    const problem = PROBLEM_BY_ERROR_CODE[code];
    const servedHint = problem && isPaid ? ': the request was perhaps served' : '';
    const message = `The gateway at ${this.address} ${problem ?? 'cannot be reached'}${servedHint} (${code || 'no answer'})`;
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
      // An answer that breaks off while nobody reads it must not end the process.
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
 * What a gateway says that does not serve a request: its own status, and its words as far as they can be shown. What is between, as a
 * balancer, also answers where it lost patience with a gateway that serves the request meanwhile.
 * @param isPaid whether the request is one that costs
 */
export async function toProxyError(reply: GatewayResponse, isPaid = false): Promise<ProxyError> {
  const { status, retryAfterSeconds, requestId } = reply;
  if (status < 400 || status > 599) {
    reply.body.destroy();
    const unknown = status < 400 ? 'a redirect, which is not followed' : `the status ${status}, which there is not`;
    const description = status < 300 ? 'an answer that is not encrypted' : unknown;
    return new ProxyError(502, `The gateway sent ${description}`, { code: 'gateway_error', isFinal: status < 300 });
  }
  const body = parseJson(await reply.readBody().catch(() => Buffer.alloc(0)));
  const { message, ...details } = parseErrorBody(body) ?? { message: `status ${status}` };
  const isFromGateway = isJsonObject(body) && body.statusCode === status && isJsonObject(body.error);
  const money = parseMoneyDetails(body);
  const shortfall =
    money && !message.includes(money.required)
      ? `: ${money.required} USD is needed and ${money.affordable} USD is there`
      : '';
  return new ProxyError(
    status,
    `The gateway${isFromGateway ? '' : ', or what is before it,'} says: ${message}${shortfall}`,
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

/** The value of JSON; undefined of what is none. The error of a parser has a piece of what it read, so it goes nowhere. */
export function parseJson(text: Buffer | string): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

/** The whole of what comes, of at most so many bytes. @throws ProxyError for more */
export async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const accumulator = new ByteAccumulator();
  for await (const chunk of body) {
    if (accumulator.size + chunk.length > maxBytes)
      throw new ProxyError(502, 'The answer is too long', { code: 'answer_too_long', isFinal: true });
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

/** What the network says, in a word that names nobody. */
function getErrorCode(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? code : '';
}
