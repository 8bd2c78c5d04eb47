/** Fetching what strangers' addresses name, without ever reaching what only we can reach. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { type Download, DownloadError, Downloader, type DownloadLimits } from '#application';
import { type Resolve, resolveByDns, resolvePublicAddresses } from './public-address.ts';
import { createPinnedAgent } from './safe-dial.ts';
import { USER_AGENT } from './user-agent.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const GONE: ReadonlySet<number> = new Set([404, 410]);
/** Signed addresses of object stores have some thousand characters. */
const MAX_ADDRESS = 8_192;
/** Nothing packed is taken: what it would unpack to, nobody knows. */
const HEADERS = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': USER_AGENT };
/** A failure is told at a whole number of these, so that its time does not tell how far it came. */
const FAILURE_STEP_MS = 500;

export interface DownloadOptions {
  /** By vendors' slugs: where each has its API, as it is configured. */
  readonly providers: ReadonlyMap<string, { readonly baseUrl: string }>;
  readonly connectTimeoutMs: number;
  /** Longest silence. */
  readonly idleTimeoutMs: number;
  /** Origins that are fetched from wherever they are: `http://10.0.0.7:8080`. */
  readonly admitted: readonly string[];
  readonly resolve?: Resolve;
  readonly dial?: typeof createPinnedAgent;
  readonly failureStepMs?: number;
}

/** One request of a chain of redirects. */
interface Hop {
  readonly url: URL;
  /** Undefined: it is dialled wherever it is. */
  readonly addresses: readonly string[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

type Answer = Dispatcher.ResponseData;

export class HttpDownloads extends Downloader {
  private readonly resolve: Resolve;
  private readonly admitted: ReadonlySet<string>;
  private readonly failureStepMs: number;

  constructor(private readonly options: DownloadOptions) {
    super();
    const { resolve = resolveByDns, admitted, failureStepMs = FAILURE_STEP_MS } = options;
    this.resolve = resolve;
    this.admitted = new Set(admitted.map((each) => new URL(each).origin));
    this.failureStepMs = failureStepMs;
  }

  override async fetchCustomerUrl(url: string, limits: DownloadLimits): Promise<Download> {
    const begun = performance.now();
    try {
      const { bytes, ...declared } = await this.download(url, (each) => this.hopTo(each), limits);
      return { ...declared, bytes: inOneVoice(bytes, limits) };
    } catch (error) {
      const step = this.failureStepMs;
      await delay(step - ((performance.now() - begun) % step), undefined, { signal: limits.signal }).catch(() => {});
      throw refusal(limits, error);
    }
  }

  override async fetchProviderFile(
    upstream: string,
    { url, headers = {} }: { readonly url: string; readonly headers?: Readonly<Record<string, string>> },
    limits: DownloadLimits,
  ): Promise<Download> {
    const { baseUrl } = this.options.providers.get(upstream) ?? {};
    const own = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
    let atHome = true;
    const hopTo = async (each: URL): Promise<Hop> => {
      if (each.origin !== own) {
        atHome = false;
        return this.hopTo(each);
      }
      // Whoever leads back to the vendor shall not have its credential sent there.
      return { url: each, addresses: undefined, headers: atHome ? headers : {} };
    };
    return this.download(url, hopTo, limits);
  }

  private async hopTo(url: URL): Promise<Hop> {
    const isPlain = (url.protocol === 'http:' || url.protocol === 'https:') && url.username + url.password === '';
    if (!isPlain) throw new DownloadError('The address must be an http(s) address without a password', 'refused');
    if (this.admitted.has(url.origin)) return { url, addresses: undefined, headers: {} };
    if (url.port !== '') throw new DownloadError('The address must have the port of its protocol', 'refused');
    try {
      return { url, addresses: await resolvePublicAddresses(url.hostname, this.resolve), headers: {} };
    } catch (cause) {
      throw new DownloadError('The address cannot be reached', 'refused', { cause });
    }
  }

  private async download(
    from: string,
    hopTo: (url: URL) => Promise<Hop>,
    { maxBytes, timeoutMs, signal }: DownloadLimits,
  ): Promise<Download> {
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let url = parsed(from);
    for (let left = MAX_REDIRECTS; ; left--) {
      const connection = new Connection(await unlessAborted(hopTo(url), within), this.options);
      const answer = await connection.ask(within);
      const { location } = answer.headers;
      if (!REDIRECTS.has(answer.statusCode) || typeof location !== 'string') {
        return connection.opened(answer, maxBytes, within);
      }
      connection.discard(answer);
      if (left === 0) throw new DownloadError('The address leads on and on', 'refused');
      url = parsed(location, url);
    }
  }
}

/** The connection of one hop. It is closed when its answer has been read, or is not wanted. */
class Connection {
  private readonly agent: Agent;

  constructor(
    private readonly hop: Hop,
    private readonly options: Pick<DownloadOptions, 'connectTimeoutMs' | 'idleTimeoutMs' | 'dial'>,
  ) {
    const { connectTimeoutMs, dial = createPinnedAgent } = options;
    this.agent = hop.addresses
      ? dial(hop.addresses, connectTimeoutMs)
      : new Agent({ connections: 1, connect: { timeout: connectTimeoutMs } });
  }

  /** @throws DownloadError */
  async ask(signal: AbortSignal): Promise<Answer> {
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
      throw failed(error);
    }
  }

  discard(answer: Answer): void {
    answer.body.on('error', () => {}).destroy();
    this.close();
  }

  /** @throws DownloadError where it is no file, or one that is too large */
  opened(answer: Answer, maxBytes: number, signal: AbortSignal): Download {
    const { statusCode, headers } = answer;
    const wrong = wrongIn(statusCode, headers, maxBytes);
    if (wrong) {
      this.discard(answer);
      throw wrong;
    }
    // Who never reads it leaves it to its time limit.
    const abandon = () => this.discard(answer);
    signal.addEventListener('abort', abandon, { once: true });
    const ended = () => {
      signal.removeEventListener('abort', abandon);
      this.discard(answer);
    };
    const declaredSize = numberIn(headers['content-length']);
    const type = headers['content-type'];
    return {
      bytes: piecesOf(answer, maxBytes, signal, ended),
      declaredType: typeof type === 'string' ? type : undefined,
      declaredSize,
    };
  }

  private close(): void {
    void this.agent.destroy().catch(() => {});
  }
}

async function unlessAborted<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(failed(signal.reason));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([step, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    step.catch(() => {});
  }
}

function wrongIn(status: number, headers: Answer['headers'], maxBytes: number): DownloadError | undefined {
  if (GONE.has(status)) return new DownloadError('The file is not there any more', 'gone');
  if (status !== 200) return new DownloadError(`The file is answered with ${status}`, 'failed');
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return new DownloadError('The file is packed, which was not asked for', 'refused');
  const size = numberIn(headers['content-length']);
  return size !== undefined && size > maxBytes ? tooLarge(maxBytes) : undefined;
}

async function* piecesOf(
  { body }: Answer,
  maxBytes: number,
  signal: AbortSignal,
  ended: () => void,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      size += piece.length;
      if (size > maxBytes) throw tooLarge(maxBytes);
      yield piece;
    }
    if (signal.aborted) throw failed(signal.reason);
  } catch (error) {
    throw error instanceof DownloadError ? error : failed(error);
  } finally {
    ended();
  }
}

/** What a customer's address fails with, however far it came. */
async function* inOneVoice(bytes: Download['bytes'], limits: DownloadLimits): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw refusal(limits, error);
  }
}

function refusal({ maxBytes, timeoutMs }: DownloadLimits, cause: unknown): DownloadError {
  const message =
    `The file cannot be fetched: it must be public, at an http(s) address, of at most ${maxBytes} bytes, ` +
    `and come within ${Math.round(timeoutMs / 1000)} seconds`;
  return new DownloadError(message, 'refused', { cause });
}

function tooLarge(maxBytes: number): DownloadError {
  return new DownloadError(`The file has more than ${maxBytes} bytes`, 'too_large');
}

function failed(cause: unknown): DownloadError {
  return new DownloadError('The file cannot be fetched', 'failed', { cause });
}

function parsed(url: string, base?: URL): URL {
  if (url.length > MAX_ADDRESS || !URL.canParse(url, base?.href))
    throw new DownloadError('The address is none', 'refused');
  return new URL(url, base);
}

function numberIn(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
