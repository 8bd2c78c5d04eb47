/** What the proxy asks of the gateway, which is not trusted with anything that is said. */
import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { isObject, type Thing } from '#application/messages';
import { ENCAPSULATED_KEY, RESPONSE_NONCE, type SealedRequest } from '#ehbp';
import { errorIn, Failure, shown } from './failure.ts';

export const PREFIX = 'private/';
/** Of a model, without the prefix: what can stand in a header, and in a log. */
export const MODEL_ID = /^[\w.:/-]{1,128}$/;

const MAX_LIST_BYTES = 16 * 1024 * 1024;
/** An attestation bundle has some 17,000. */
const MAX_BUNDLE_BYTES = 1024 * 1024;
const MAX_PROBLEM_BYTES = 64 * 1024;
const CONNECT_MS = 10_000;
/** For what is no answer of a model. */
const SOON_MS = 30_000;
/** A model may think for long before its first word, and an enclave between two of them. */
const THINKING_MS = 15 * 60_000;

/** There was no connection, so nothing was paid. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

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
export interface SealedAnswer {
  readonly status: number;
  /** It is encrypted where there is one. */
  readonly nonce: string | undefined;
  /** The gateway's id of the request, for its support. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Of at most `bytes`. @throws Failure for a longer one */
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

export class Gateway {
  private readonly agent = new Agent({ connect: { timeout: CONNECT_MS }, connections: null, pipelining: 1 });

  constructor(
    readonly address: string,
    private readonly apiKey: string,
  ) {}

  async models(): Promise<readonly PrivateModel[]> {
    const { data } = await this.json('/v1/models?type=all', MAX_LIST_BYTES);
    if (!Array.isArray(data)) throw new Failure(502, 'The gateway has no list of models', { code: 'gateway_error' });
    return data.filter(isObject).flatMap(modelIn);
  }

  /** What the enclave of a model shows of itself. @param model without the prefix. @param isAnew now, not half a minute ago */
  async bundle(model: string, isAnew: boolean): Promise<unknown> {
    const path = `/private/attestation?model=${encodeURIComponent(PREFIX + model)}`;
    return this.json(path, MAX_BUNDLE_BYTES, isAnew ? { 'cache-control': 'no-cache' } : {});
  }

  /** @param model without the prefix. @throws Failure when the gateway cannot be reached */
  chat(model: string, { encapsulatedKey, frames }: SealedRequest, signal: AbortSignal): Promise<SealedAnswer> {
    return this.ask('/private/v1/chat/completions', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.apiKey}`,
        'content-type': 'application/json',
        // What comes as it is made is held for as it grows; anything else for the longest that there is.
        accept: 'text/event-stream',
        [ENCAPSULATED_KEY]: encapsulatedKey,
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

  private async json(path: string, bytes: number, headers: Record<string, string> = {}): Promise<Thing> {
    const answer = await this.ask(path, {
      method: 'GET',
      headers: { accept: 'application/json', ...headers },
      patienceMs: SOON_MS,
      signal: AbortSignal.timeout(SOON_MS),
    });
    if (answer.status !== 200) throw await refusalOf(answer);
    const body = jsonIn(await answer.read(bytes));
    if (!isObject(body))
      throw new Failure(502, 'The gateway answered with something that is not JSON', { code: 'gateway_error' });
    return body;
  }

  private async ask(path: string, { patienceMs, ...asked }: Asked): Promise<SealedAnswer> {
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
        nonce: textOf(headers[RESPONSE_NONCE]),
        requestId: textOf(headers['x-request-id'])?.match(/^[\w-]{1,128}$/)?.[0],
        retryAfterSeconds: Number.isSafeInteger(retryAfter) && retryAfter >= 0 ? retryAfter : undefined,
        read: (bytes = MAX_PROBLEM_BYTES) => wholeOf(body, bytes),
        body,
      };
    } catch (error) {
      if (asked.signal.reason instanceof Failure) throw asked.signal.reason;
      throw new Failure(502, `The gateway at ${this.address} cannot be reached (${codeOf(error) || 'no answer'})`, {
        code: 'gateway_unreachable',
        final: asked.method === 'POST' && !NEVER_SENT.has(codeOf(error)),
      });
    }
  }
}

/** What a gateway says that does not serve a request: its own status, and its words as far as they can be shown. */
export async function refusalOf(answer: SealedAnswer): Promise<Failure> {
  const { status, retryAfterSeconds } = answer;
  if (status < 400 || status > 599) {
    answer.body.destroy();
    const unknown = status < 400 ? 'a redirect, which is not followed' : `the status ${status}, which there is not`;
    const what = status < 300 ? 'an answer that is not encrypted' : unknown;
    return new Failure(502, `The gateway sent ${what}`, { code: 'gateway_error', final: status < 300 });
  }
  const said = errorIn(jsonIn(await answer.read().catch(() => Buffer.alloc(0))));
  const more = { ...(said?.code ? { code: said.code } : {}), ...(said?.type ? { type: said.type } : {}) };
  return new Failure(status, `The gateway says: ${said?.message ?? `status ${status}`}`, {
    code: 'gateway_error',
    ...more,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

/** The value of JSON; undefined of what is none. The error of a parser has a piece of what it read, so it goes nowhere. */
export function jsonIn(text: Buffer | string): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

/** The whole of what comes, of at most so many bytes. @throws Failure for more */
export async function wholeOf(pieces: AsyncIterable<Uint8Array>, bytes: number): Promise<Buffer> {
  const read: Uint8Array[] = [];
  let left = bytes;
  for await (const piece of pieces) {
    left -= piece.length;
    if (left < 0) throw new Failure(502, 'The answer is too long', { code: 'answer_too_long', final: true });
    read.push(piece);
  }
  return Buffer.concat(read);
}

function modelIn({ id, name, created, context_length, top_provider }: Thing): readonly PrivateModel[] {
  if (typeof id !== 'string' || !id.startsWith(PREFIX) || !MODEL_ID.test(id)) return [];
  const maxOutput = isObject(top_provider) ? top_provider.max_completion_tokens : undefined;
  return [
    {
      id,
      name: typeof name === 'string' ? shown(name) : id,
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
