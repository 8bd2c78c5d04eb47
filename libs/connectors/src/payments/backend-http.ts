/**
 * HTTP client for payment backends. Size and time of responses other than streams are limited, and errors do not quote
 * what was sent.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import { ByteAccumulator, createCredentialError, UpstreamError } from '#application';
import { observeStart } from '../http/provider-request.ts';
import { USER_AGENT } from '../http/user-agent.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Codes of errors about a certificate that none of the trusted ones has signed. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'CERT_SIGNATURE_FAILURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

export interface BackendRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Waits in a queue if the backend has a limit of requests per second. */
  readonly isRateLimited?: true;
  /** Added to the timeout, for a long poll. */
  readonly extraTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface BackendResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** The response exceeds `MAX_RESPONSE_BYTES`. */
export class ResponseTooLargeError extends UpstreamError {}

/**
 * Runs the requests after the one that created a payment. The failure of these is no certain rejection: the payment
 * exists.
 */
export async function runAfterCreation<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof UpstreamError ? error.withDetails({ status: undefined, isUnsent: false }) : error;
  }
}

interface BackendHttpLimits {
  /** Returns the certificates to trust, in PEM format, if that of the backend is not signed by a public authority. */
  getCertificates?(): readonly string[] | undefined;
  readonly connections?: number;
  readonly perSecond?: number;
}

/** Returns a connector that trusts the current certificates. Open connections remain in use when they change. */
function createConnector(getCertificates: () => readonly string[] | undefined = () => undefined) {
  let certificates: readonly string[] | undefined;
  let connectors = [buildConnector({ timeout: CONNECT_TIMEOUT_MS })];
  const connect: buildConnector.connector = (options, callback) => {
    const current = getCertificates();
    if (current !== undefined && current !== certificates) {
      certificates = current;
      connectors = listTrustedSets(current).map((ca) => buildConnector({ timeout: CONNECT_TIMEOUT_MS, ca }));
    }
    connectWithAny(connectors, options, callback);
  };
  return connect;
}

/**
 * Of several trusted certificates with the same name, TLS considers only one, and a node that renews its certificate
 * uses the same name. So each is trusted separately, and all together because they may be one chain.
 */
function listTrustedSets(certificates: readonly string[]): string[][] {
  if (certificates.length === 1) return [[...certificates]];
  return [...certificates.map((certificate) => [certificate]), [...certificates]];
}

/** Uses the first connector whose certificates the backend's matches. Other failures are not retried. */
function connectWithAny(
  [connect, ...alternatives]: readonly buildConnector.connector[],
  options: buildConnector.Options,
  callback: buildConnector.Callback,
): void {
  connect?.(options, (...result) => {
    const [error] = result;
    if (error !== null && alternatives.length > 0 && UNTRUSTED.has(String((error as NodeJS.ErrnoException).code)))
      connectWithAny(alternatives, options, callback);
    else callback(...result);
  });
}

export class BackendHttp {
  private readonly dispatcher: Dispatcher;
  private queue: Promise<void> = Promise.resolve();
  /** When the last rate-limited request was sent. */
  private lastSentAtMs = 0;

  /**
   * @param backendName the subject of error messages, such as `The Monero wallet`
   * @param connections maximum number of connections
   * @param perSecond maximum number of rate-limited requests per second
   */
  constructor(
    readonly backendName: string,
    private readonly url: string,
    private readonly limits: BackendHttpLimits = {},
  ) {
    const { getCertificates, connections } = limits;
    const connect = createConnector(getCertificates);
    this.dispatcher = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, connections: connections ?? null });
  }

  /**
   * Returns a response of any status.
   * @throws UpstreamError if no complete response arrives in time, or it is too large; another error if the caller
   * aborted the request
   */
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
    let [isStarted, isResponding] = [false, false];
    const dispatcher = observeStart(this.dispatcher, () => {
      isStarted = true;
    });
    try {
      const headers = { 'user-agent': USER_AGENT, ...sent.headers };
      const options = { ...sent, headers, signal, dispatcher };
      const { statusCode: status, headers: responseHeaders, body } = await request(this.url + path, options);
      isResponding = true;
      return { status, headers: responseHeaders, text: await this.readText(body) };
    } catch (cause) {
      if (cause instanceof UpstreamError || callerSignal?.aborted) throw cause;
      if (timeoutSignal.aborted) throw new UpstreamError('timeout', `${this.backendName} took too long`);
      if (isResponding)
        throw new UpstreamError('upstream_error', `${this.backendName} interrupted its response`, { cause });
      const details = { cause, isUnsent: !isStarted };
      throw new UpstreamError('upstream_unavailable', `${this.backendName} cannot be reached`, details);
    }
  }

  /**
   * Returns the chunks of an open-ended response.
   * @throws UpstreamError if the backend is unreachable or the status is not 200
   */
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

  /** Waits until the next request may be sent. Unused time is not made up for later, to prevent bursts. */
  private throttle(gapMs: number): Promise<void> {
    this.queue = this.queue.then(async () => {
      const wait = this.lastSentAtMs + gapMs - performance.now();
      if (wait > 0) await delay(wait);
      this.lastSentAtMs = performance.now();
    });
    return this.queue;
  }

  /** Throws for a response with an unexpected status. 401 and 403 reject the operator's credential. */
  throwStatusError(status: number): never {
    const message = `${this.backendName} responded with status ${status}`;
    if (status === 401 || status === 403) throw createCredentialError(message, status);
    throw new UpstreamError('upstream_error', message, { status });
  }

  /** Throws without the parser's message. That message quotes the response, and the response may quote the request. */
  throwUnreadable(): never {
    throw new UpstreamError('upstream_error', `${this.backendName} sent an unreadable response`);
  }

  close(): Promise<void> {
    return this.dispatcher.destroy();
  }

  private async readText(body: AsyncIterable<Uint8Array>): Promise<string> {
    const accumulator = new ByteAccumulator();
    for await (const chunk of body) {
      accumulator.add(chunk);
      if (accumulator.size > MAX_RESPONSE_BYTES)
        throw new ResponseTooLargeError('upstream_error', `${this.backendName} sent too many bytes`);
    }
    return accumulator.bytes.toString('utf8');
  }
}
