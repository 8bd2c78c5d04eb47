/** HTTP to a back end that takes payments: every answer is bounded in size and time, and no failure repeats what was sent. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { ByteAccumulator, UpstreamError } from '#application';
import { USER_AGENT } from '../http/user-agent.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface BackendRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** It waits for its turn, where their number in a second is bounded. */
  readonly paced?: true;
  /** For what is asked to wait: how long until its answer, beyond what any other takes. */
  readonly waitsMs?: number;
  readonly signal?: AbortSignal;
}

export interface BackendResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** An answer is larger than any that is read. */
export class ResponseTooLargeError extends UpstreamError {}

interface Bounds {
  readonly certificate?: string | undefined;
  readonly connections?: number;
  readonly perSecond?: number;
}

export class BackendHttp {
  private readonly dispatcher: Dispatcher;
  private line: Promise<void> = Promise.resolve();
  /** When the last question went out that waited for its turn. */
  private wentOut = 0;

  /**
   * @param who as failures name it: `The Monero wallet`
   * @param certificate file with a certificate of its own
   * @param connections how many there are at most
   * @param perSecond questions, where one look may need several
   */
  constructor(
    readonly who: string,
    private readonly url: string,
    private readonly bounds: Bounds = {},
  ) {
    const { certificate, connections } = bounds;
    const ca = certificate === undefined ? {} : { ca: readFileSync(certificate) };
    const connect = { timeout: CONNECT_TIMEOUT_MS, ...ca };
    this.dispatcher = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, connections: connections ?? null });
  }

  /** @returns an answer of any status @throws UpstreamError */
  async ask({ path, waitsMs = 0, signal: asked, paced, ...sent }: BackendRequest): Promise<BackendResponse> {
    if (paced && this.bounds.perSecond !== undefined) await this.turn(1_000 / this.bounds.perSecond);
    const inTime = AbortSignal.timeout(TIMEOUT_MS + waitsMs);
    const signal = asked ? AbortSignal.any([asked, inTime]) : inTime;
    let begun = false;
    try {
      const headers = { 'user-agent': USER_AGENT, ...sent.headers };
      const options = { ...sent, headers, signal, dispatcher: this.dispatcher };
      const { statusCode: status, headers: told, body } = await request(this.url + path, options);
      begun = true;
      return { status, headers: told, text: await this.whole(body) };
    } catch (cause) {
      if (cause instanceof UpstreamError || asked?.aborted) throw cause;
      if (inTime.aborted) throw new UpstreamError('timeout', `${this.who} took too long`);
      if (begun) throw new UpstreamError('upstream_error', `${this.who} broke off its answer`, { cause });
      throw new UpstreamError('upstream_unavailable', `${this.who} cannot be reached`, { cause });
    }
  }

  /** An answer that goes on until `signal` ends it. @throws UpstreamError */
  async follow(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const options = { headers: { 'user-agent': USER_AGENT, ...headers }, dispatcher: this.dispatcher, signal };
    const { statusCode, body } = await request(this.url + path, options).catch((cause: unknown) => {
      throw new UpstreamError('upstream_unavailable', `${this.who} cannot be reached`, { cause });
    });
    if (statusCode === 200) return body.setEncoding('utf8');
    await body.dump();
    return this.refused(statusCode);
  }

  /** What was late is not caught up with: that would be too many at once. */
  private turn(gapMs: number): Promise<void> {
    this.line = this.line.then(async () => {
      const wait = this.wentOut + gapMs - performance.now();
      if (wait > 0) await delay(wait);
      this.wentOut = performance.now();
    });
    return this.line;
  }

  /** The answer has a status that is none of those that mean something. */
  refused(status: number): never {
    throw new UpstreamError('upstream_error', `${this.who} answered with status ${status}`, { status });
  }

  /** Without the words of a parser, which repeat the answer, which may repeat the question. */
  unreadable(): never {
    throw new UpstreamError('upstream_error', `${this.who} sent an answer that cannot be read`);
  }

  close(): Promise<void> {
    return this.dispatcher.destroy();
  }

  private async whole(body: AsyncIterable<Uint8Array>): Promise<string> {
    const gathered = new ByteAccumulator();
    for await (const piece of body) {
      gathered.add(piece);
      if (gathered.size > MAX_ANSWER_BYTES)
        throw new ResponseTooLargeError('upstream_error', `${this.who} sent too much`);
    }
    return gathered.bytes.toString('utf8');
  }
}
