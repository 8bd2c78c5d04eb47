/** HTTP to a back end that takes payments: every answer is bounded in size and time, and no failure repeats what was sent. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { ByteAccumulator, UpstreamError } from '#application';
import { USER_AGENT } from '../http/user-agent.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

export interface BackendRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** It waits for its turn, where their number in a second is bounded. */
  readonly isRateLimited?: true;
  /** For what is asked to wait: how long until its answer, beyond what any other takes. */
  readonly extraTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface BackendResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** An answer is larger than any that is read. */
export class ResponseTooLargeError extends UpstreamError {}

interface BackendHttpLimits {
  readonly certificate?: string | undefined;
  readonly connections?: number;
  readonly perSecond?: number;
}

export class BackendHttp {
  private readonly dispatcher: Dispatcher;
  private queue: Promise<void> = Promise.resolve();
  /** When the last question went out that waited for its turn. */
  private lastSentAtMs = 0;

  /**
   * @param backendName as failures name it: `The Monero wallet`
   * @param certificate file with a certificate of its own
   * @param connections how many there are at most
   * @param perSecond questions, where one look may need several
   */
  constructor(
    readonly backendName: string,
    private readonly url: string,
    private readonly limits: BackendHttpLimits = {},
  ) {
    const { certificate, connections } = limits;
    const ca = certificate === undefined ? {} : { ca: readFileSync(certificate) };
    const connect = { timeout: CONNECT_TIMEOUT_MS, ...ca };
    this.dispatcher = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, connections: connections ?? null });
  }

  /** @returns an answer of any status @throws UpstreamError */
  async send({
    path,
    extraTimeoutMs = 0,
    signal: callerSignal,
    isRateLimited,
    ...sent
  }: BackendRequest): Promise<BackendResponse> {
    if (isRateLimited && this.limits.perSecond !== undefined) await this.throttle(1_000 / this.limits.perSecond);
    const timeoutSignal = AbortSignal.timeout(TIMEOUT_MS + extraTimeoutMs);
    const signal = callerSignal ? AbortSignal.any([callerSignal, timeoutSignal]) : timeoutSignal;
    let isResponding = false;
    try {
      const headers = { 'user-agent': USER_AGENT, ...sent.headers };
      const options = { ...sent, headers, signal, dispatcher: this.dispatcher };
      const { statusCode: status, headers: responseHeaders, body } = await request(this.url + path, options);
      isResponding = true;
      return { status, headers: responseHeaders, text: await this.readText(body) };
    } catch (cause) {
      if (cause instanceof UpstreamError || callerSignal?.aborted) throw cause;
      if (timeoutSignal.aborted) throw new UpstreamError('timeout', `${this.backendName} took too long`);
      if (isResponding)
        throw new UpstreamError('upstream_error', `${this.backendName} broke off its answer`, { cause });
      throw new UpstreamError('upstream_unavailable', `${this.backendName} cannot be reached`, { cause });
    }
  }

  /** An answer that goes on until `signal` ends it. @throws UpstreamError */
  async stream(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const options = { headers: { 'user-agent': USER_AGENT, ...headers }, dispatcher: this.dispatcher, signal };
    const { statusCode, body } = await request(this.url + path, options).catch((cause: unknown) => {
      throw new UpstreamError('upstream_unavailable', `${this.backendName} cannot be reached`, { cause });
    });
    if (statusCode === 200) return body.setEncoding('utf8');
    await body.dump();
    return this.throwStatusError(statusCode);
  }

  /** What was late is not caught up with: that would be too many at once. */
  private throttle(gapMs: number): Promise<void> {
    this.queue = this.queue.then(async () => {
      const wait = this.lastSentAtMs + gapMs - performance.now();
      if (wait > 0) await delay(wait);
      this.lastSentAtMs = performance.now();
    });
    return this.queue;
  }

  /** The answer has a status that is none of those that mean something. */
  throwStatusError(status: number): never {
    throw new UpstreamError('upstream_error', `${this.backendName} answered with status ${status}`, { status });
  }

  /** Without the words of a parser, which repeat the answer, which may repeat the question. */
  throwUnreadable(): never {
    throw new UpstreamError('upstream_error', `${this.backendName} sent an answer that cannot be read`);
  }

  close(): Promise<void> {
    return this.dispatcher.destroy();
  }

  private async readText(body: AsyncIterable<Uint8Array>): Promise<string> {
    const accumulator = new ByteAccumulator();
    for await (const chunk of body) {
      accumulator.add(chunk);
      if (accumulator.size > MAX_RESPONSE_BYTES)
        throw new ResponseTooLargeError('upstream_error', `${this.backendName} sent too much`);
    }
    return accumulator.bytes.toString('utf8');
  }
}
