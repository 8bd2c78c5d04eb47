/**
 * Downloads files from URLs of third parties without connecting to hosts that only the gateway's network can reach. Of
 * these hosts, only allowed origins are accepted, and for a file of a provider the origin of its API.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { type Download, DownloadError, Downloader, type DownloadLimits } from '#application';
import { createPinnedAgent } from './pinned-agent.ts';
import { type ResolveHostname, resolveByDns, resolvePublicAddresses } from './public-address.ts';
import { USER_AGENT } from './user-agent.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NOT_FOUND_STATUSES: ReadonlySet<number> = new Set([404, 410]);
/** Signed URLs of object stores can have some thousand characters. */
const MAX_URL_LENGTH = 8_192;
/** Compressed responses are rejected, because their uncompressed size is unknown. */
const HEADERS = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': USER_AGENT };
/**
 * Failures of a customer's URL before its file arrives are reported after a multiple of this time, so that their timing
 * does not reveal which step failed. Only a download that the caller aborts fails at once.
 */
const FAILURE_STEP_MS = 500;

export interface DownloadOptions {
  /** The configured API of each provider, by slug. */
  readonly providers: ReadonlyMap<string, { readonly baseUrl: string }>;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /**
   * Origins that are allowed even with a private address or a port other than the default, such as
   * `http://10.0.0.7:8080`.
   */
  readonly allowedOrigins: readonly string[];
  readonly resolve?: ResolveHostname;
  readonly createAgent?: typeof createPinnedAgent;
  readonly failureStepMs?: number;
}

/** One request of a chain of redirects. */
interface Hop {
  readonly url: URL;
  /** Undefined if the host may have any address. */
  readonly addresses: readonly string[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

type HttpResponse = Dispatcher.ResponseData;

export class HttpDownloads extends Downloader {
  private readonly resolve: ResolveHostname;
  private readonly allowedOrigins: ReadonlySet<string>;
  private readonly failureStepMs: number;

  constructor(private readonly options: DownloadOptions) {
    super();
    const { resolve = resolveByDns, allowedOrigins, failureStepMs = FAILURE_STEP_MS } = options;
    this.resolve = resolve;
    this.allowedOrigins = new Set(allowedOrigins.map((origin) => new URL(origin).origin));
    this.failureStepMs = failureStepMs;
  }

  override async fetchCustomerUrl(url: string, limits: DownloadLimits): Promise<Download> {
    const startedAt = performance.now();
    try {
      const { bytes, ...declared } = await this.download(url, (hopUrl) => this.resolveHop(hopUrl), limits);
      return { ...declared, bytes: withUniformErrors(bytes, limits) };
    } catch (error) {
      const step = this.failureStepMs;
      const waitMs = step - ((performance.now() - startedAt) % step);
      await delay(waitMs, undefined, { signal: limits.signal }).catch(() => {}); // aborted
      throw toUniformError(limits, error);
    }
  }

  override async fetchProviderFile(
    upstream: string,
    { url, headers = {} }: { readonly url: string; readonly headers?: Readonly<Record<string, string>> },
    limits: DownloadLimits,
  ): Promise<Download> {
    const { baseUrl } = this.options.providers.get(upstream) ?? {};
    const providerOrigin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
    let isAtProviderOrigin = true;
    const resolveProviderHop = async (hopUrl: URL): Promise<Hop> => {
      if (hopUrl.origin !== providerOrigin) {
        isAtProviderOrigin = false;
        return this.resolveHop(hopUrl);
      }
      // A third party that redirects back to the provider must not make the gateway send the provider's credential.
      return { url: hopUrl, addresses: undefined, headers: isAtProviderOrigin ? headers : {} };
    };
    return this.download(url, resolveProviderHop, limits);
  }

  private async resolveHop(url: URL): Promise<Hop> {
    const isValid = (url.protocol === 'http:' || url.protocol === 'https:') && url.username + url.password === '';
    if (!isValid) throw new DownloadError('The URL must use http or https and have no credentials', 'rejected');
    if (this.allowedOrigins.has(url.origin)) return { url, addresses: undefined, headers: {} };
    if (url.port !== '') throw new DownloadError('The URL must use the default port of its protocol', 'rejected');
    try {
      return { url, addresses: await resolvePublicAddresses(url.hostname, this.resolve), headers: {} };
    } catch (cause) {
      throw new DownloadError('The host of the URL cannot be reached', 'rejected', { cause });
    }
  }

  private async download(
    from: string,
    resolveHop: (url: URL) => Promise<Hop>,
    { maxBytes, timeoutMs, signal }: DownloadLimits,
  ): Promise<Download> {
    const downloadSignal = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let url = parseUrl(from);
    for (let remaining = MAX_REDIRECTS; ; remaining--) {
      const connection = new Connection(await rejectOnAbort(resolveHop(url), downloadSignal), this.options);
      const response = await connection.send(downloadSignal);
      const { location } = response.headers;
      if (!REDIRECTS.has(response.statusCode) || typeof location !== 'string') {
        return connection.toDownload(response, maxBytes, downloadSignal);
      }
      connection.discard(response);
      if (remaining === 0) throw new DownloadError('The URL redirects too often', 'rejected');
      url = parseUrl(location, url);
    }
  }
}

/** The connection of one hop. It is closed when its response has been read or discarded. */
class Connection {
  private readonly agent: Agent;

  constructor(
    private readonly hop: Hop,
    private readonly options: Pick<DownloadOptions, 'connectTimeoutMs' | 'idleTimeoutMs' | 'createAgent'>,
  ) {
    const { connectTimeoutMs, createAgent = createPinnedAgent } = options;
    this.agent = hop.addresses
      ? createAgent(hop.addresses, connectTimeoutMs)
      : new Agent({ connections: 1, connect: { timeout: connectTimeoutMs } });
  }

  /** @throws DownloadError if there is no response */
  async send(signal: AbortSignal): Promise<HttpResponse> {
    const { idleTimeoutMs } = this.options;
    const { url, headers } = this.hop;
    try {
      return await request(url, {
        dispatcher: this.agent,
        method: 'GET',
        headers: { ...HEADERS, ...headers },
        headersTimeout: idleTimeoutMs,
        bodyTimeout: idleTimeoutMs,
        signal,
      });
    } catch (error) {
      this.close();
      throw toDownloadError(error);
    }
  }

  discard(response: HttpResponse): void {
    response.body.on('error', () => {}).destroy();
    this.close();
  }

  /** @throws DownloadError if the status is not 200, or the body is compressed or declared as too large */
  toDownload(response: HttpResponse, maxBytes: number, signal: AbortSignal): Download {
    const { statusCode, headers } = response;
    const error = findResponseError(statusCode, headers, maxBytes);
    if (error) {
      this.discard(response);
      throw error;
    }
    // A response that the caller never reads is closed at the timeout, or when the download is aborted.
    const abandon = () => this.discard(response);
    signal.addEventListener('abort', abandon, { once: true });
    const onEnd = () => {
      signal.removeEventListener('abort', abandon);
      this.discard(response);
    };
    const declaredSize = parseContentLength(headers['content-length']);
    const type = headers['content-type'];
    return {
      bytes: readChunks(response, maxBytes, signal, onEnd),
      declaredType: typeof type === 'string' ? type : undefined,
      declaredSize,
    };
  }

  private close(): void {
    void this.agent.destroy().catch(() => {}); // its requests have ended
  }
}

async function rejectOnAbort<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(toDownloadError(signal.reason));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([step, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    step.catch(() => {}); // thrown above, or too late for anyone
  }
}

function findResponseError(
  status: number,
  headers: HttpResponse['headers'],
  maxBytes: number,
): DownloadError | undefined {
  if (NOT_FOUND_STATUSES.has(status)) return new DownloadError('The file does not exist', 'not_found');
  if (status !== 200) return new DownloadError(`The host of the file responded with status ${status}`, 'failed');
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return new DownloadError('The file is compressed, which was not requested', 'rejected');
  const size = parseContentLength(headers['content-length']);
  return size !== undefined && size > maxBytes ? tooLargeError(maxBytes) : undefined;
}

async function* readChunks(
  { body }: HttpResponse,
  maxBytes: number,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > maxBytes) throw tooLargeError(maxBytes);
      yield chunk;
    }
    if (signal.aborted) throw toDownloadError(signal.reason);
  } catch (error) {
    throw error instanceof DownloadError ? error : toDownloadError(error);
  } finally {
    onEnd();
  }
}

/** Replaces all errors with the same one, so that they do not reveal which step failed. */
async function* withUniformErrors(bytes: Download['bytes'], limits: DownloadLimits): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toUniformError(limits, error);
  }
}

function toUniformError({ maxBytes, timeoutMs }: DownloadLimits, cause: unknown): DownloadError {
  const message =
    `The file cannot be downloaded: it must have a public http or https URL, have at most ${maxBytes} bytes ` +
    `and arrive within ${Math.round(timeoutMs / 1000)} seconds`;
  return new DownloadError(message, 'rejected', { cause });
}

function tooLargeError(maxBytes: number): DownloadError {
  return new DownloadError(`The file has more than ${maxBytes} bytes`, 'too_large');
}

function toDownloadError(cause: unknown): DownloadError {
  return new DownloadError('The file cannot be downloaded', 'failed', { cause });
}

function parseUrl(url: string, base?: URL): URL {
  if (url.length > MAX_URL_LENGTH || !URL.canParse(url, base?.href))
    throw new DownloadError('The URL is invalid or too long', 'rejected');
  return new URL(url, base);
}

function parseContentLength(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
