/** What the proxy asks of the gateway, which is not trusted with anything that is said. */
import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { ByteAccumulator, isJsonObject, type JsonObject } from '#application/messages';
import { ENCAPSULATED_KEY_HEADER, RESPONSE_NONCE_HEADER, type SealedRequest } from '#ehbp';
import { ProxyError, parseErrorBody, parseMoneyDetails, sanitizeForDisplay } from './proxy-error.ts';

export const PREFIX = 'private/';
/** Of a model, without the prefix: what can stand in a header, and in a log. */
export const MODEL_ID = /^[\w.:/-]{1,128}$/;

const MAX_LIST_BYTES = 16 * 1024 * 1024;
/** An attestation bundle has some 17,000. */
const MAX_BUNDLE_BYTES = 1024 * 1024;
const MAX_HISTORY_BYTES = 256 * 1024;
const MAX_PROBLEM_BYTES = 64 * 1024;
const CONNECT_MS = 10_000;
/** For what is no answer of a model. */
const SOON_MS = 30_000;
/** A model may think for long before its first word, and an enclave between two of them. */
const THINKING_MS = 15 * 60_000;

/** For why an answer broke off, whose caller waits for no more of it. */
const AT_ONCE_MS = 1_500;
/** The newest of the history, among them what has just ended. */
const HISTORY = '/queries/history?page_count=20';

/** There was no connection, so nothing was paid. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What a gateway does that is there, in the words of the network. */
const DONE_INSTEAD: Readonly<Record<string, string>> = {
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
  readonly maxOutput?: number;
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
  read(bytes?: number): Promise<Buffer>;
  readonly body: Readable;
}

interface Asked {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: Readable;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

export class GatewayClient {
  private readonly agent = new Agent({ connect: { timeout: CONNECT_MS }, connections: null, pipelining: 1 });

  constructor(
    readonly address: string,
    private readonly apiKey: string,
  ) {}

  async models(): Promise<readonly PrivateModel[]> {
    const { data } = await this.json('/v1/models?type=all', MAX_LIST_BYTES);
    if (!Array.isArray(data)) throw new ProxyError(502, 'The gateway has no list of models', { code: 'gateway_error' });
    return data.filter(isJsonObject).flatMap(modelIn);
  }

  /** What the enclave of a model shows of itself. @param model without the prefix. @param isAnew now, not half a minute ago */
  async bundle(model: string, isAnew: boolean): Promise<unknown> {
    const path = `/private/attestation?model=${encodeURIComponent(PREFIX + model)}`;
    return this.json(path, MAX_BUNDLE_BYTES, { headers: isAnew ? { 'cache-control': 'no-cache' } : {} });
  }

  /** What the gateway's history says of why a request has failed; undefined where it does not say that soon. */
  async errorOf(requestId: string, signal: AbortSignal): Promise<unknown> {
    try {
      const { data } = await this.json(HISTORY, MAX_HISTORY_BYTES, {
        headers: this.paying,
        signal: AbortSignal.any([signal, AbortSignal.timeout(AT_ONCE_MS)]),
      });
      const rows = Array.isArray(data) ? data.filter(isJsonObject) : [];
      return rows.find(({ request_id }) => request_id === requestId)?.error_code;
    } catch {
      return undefined;
    }
  }

  /** @param model without the prefix. @throws ProxyError when the gateway cannot be reached */
  chat(model: string, { encapsulatedKey, frames }: SealedRequest, signal: AbortSignal): Promise<GatewayResponse> {
    return this.ask('/private/v1/chat/completions', {
      method: 'POST',
      headers: {
        ...this.paying,
        'content-type': 'application/json',
        // What comes as it is made is held for as it grows; anything else for the longest that there is.
        accept: 'text/event-stream',
        [ENCAPSULATED_KEY_HEADER]: encapsulatedKey,
        'x-private-model': PREFIX + model,
        'x-query-source': 'api',
      },
      body: Readable.from(frames),
      patienceMs: THINKING_MS,
      signal,
    });
  }

  close(): Promise<void> {
    return this.agent.destroy();
  }

  private get paying() {
    return { authorization: `Bearer ${this.apiKey}` };
  }

  private async json(
    path: string,
    bytes: number,
    { headers = {}, signal = AbortSignal.timeout(SOON_MS) }: Partial<Pick<Asked, 'headers' | 'signal'>> = {},
  ): Promise<JsonObject> {
    const answer = await this.ask(path, {
      method: 'GET',
      headers: { accept: 'application/json', ...headers },
      patienceMs: SOON_MS,
      signal,
    });
    if (answer.status !== 200) throw await toProxyError(answer);
    const read = answer.read(bytes).catch((error: unknown) => {
      throw error instanceof ProxyError ? error : this.notReached(codeOf(error), false);
    });
    const body = parseJson(await read);
    if (!isJsonObject(body))
      throw new ProxyError(502, 'The gateway answered with something that is not JSON', { code: 'gateway_error' });
    return body;
  }

  private notReached(code: string, isPaid: boolean): ProxyError {
    const did = DONE_INSTEAD[code];
    const served = did && isPaid ? ': the request was perhaps served' : '';
    const message = `The gateway at ${this.address} ${did ?? 'cannot be reached'}${served} (${code || 'no answer'})`;
    return new ProxyError(502, message, { code: 'gateway_unreachable', final: isPaid && !NEVER_SENT.has(code) });
  }

  private async ask(path: string, { patienceMs, ...asked }: Asked): Promise<GatewayResponse> {
    try {
      const { statusCode, headers, body } = await request(this.address + path, {
        ...asked,
        dispatcher: this.agent,
        headersTimeout: patienceMs,
        bodyTimeout: patienceMs,
      });
      // An answer that breaks off while nobody reads it must not end the process.
      body.on('error', () => {});
      const retryAfter = Number(headers['retry-after'] ?? Number.NaN);
      return {
        status: statusCode,
        nonce: textOf(headers[RESPONSE_NONCE_HEADER]),
        requestId: textOf(headers['x-request-id'])?.match(/^[\w-]{1,128}$/)?.[0],
        retryAfterSeconds: Number.isSafeInteger(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
        read: (bytes = MAX_PROBLEM_BYTES) => readBody(body, bytes),
        body,
      };
    } catch (error) {
      if (asked.signal.reason instanceof ProxyError) throw asked.signal.reason;
      throw this.notReached(codeOf(error), asked.method === 'POST');
    }
  }
}

/**
 * What a gateway says that does not serve a request: its own status, and its words as far as they can be shown. What is between, as a
 * balancer, also answers where it lost patience with a gateway that serves the request meanwhile.
 * @param isPaid whether the request is one that costs
 */
export async function toProxyError(answer: GatewayResponse, isPaid = false): Promise<ProxyError> {
  const { status, retryAfterSeconds, requestId } = answer;
  if (status < 400 || status > 599) {
    answer.body.destroy();
    const unknown = status < 400 ? 'a redirect, which is not followed' : `the status ${status}, which there is not`;
    const what = status < 300 ? 'an answer that is not encrypted' : unknown;
    return new ProxyError(502, `The gateway sent ${what}`, { code: 'gateway_error', final: status < 300 });
  }
  const body = parseJson(await answer.read().catch(() => Buffer.alloc(0)));
  const { message, ...words } = parseErrorBody(body) ?? { message: `status ${status}` };
  const isOwn = isJsonObject(body) && body.statusCode === status && isJsonObject(body.error);
  const money = parseMoneyDetails(body);
  const missing =
    money && !message.includes(money.required)
      ? `: ${money.required} USD is needed and ${money.affordable} USD is there`
      : '';
  return new ProxyError(status, `The gateway${isOwn ? '' : ', or what is before it,'} says: ${message}${missing}`, {
    code: 'gateway_error',
    ...words,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(money ? { money } : {}),
    ...(requestId ? { requestId } : {}),
    final: isPaid && !isOwn && status >= 500,
  });
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
export async function readBody(pieces: AsyncIterable<Uint8Array>, bytes: number): Promise<Buffer> {
  const read = new ByteAccumulator();
  for await (const piece of pieces) {
    if (read.size + piece.length > bytes)
      throw new ProxyError(502, 'The answer is too long', { code: 'answer_too_long', final: true });
    read.add(piece);
  }
  return read.bytes;
}

function modelIn({ id, name, created, context_length, top_provider }: JsonObject): readonly PrivateModel[] {
  if (typeof id !== 'string' || !id.startsWith(PREFIX) || !MODEL_ID.test(id)) return [];
  const maxOutput = isJsonObject(top_provider) ? top_provider.max_completion_tokens : undefined;
  return [
    {
      id,
      name: typeof name === 'string' ? sanitizeForDisplay(name) : id,
      created: isCount(created) ? created : 0,
      ...(isCount(context_length) ? { contextLength: context_length } : {}),
      ...(isCount(maxOutput) ? { maxOutput } : {}),
    },
  ];
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}

/** What the network says, in a word that names nobody. */
function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? code : '';
}
