/**
 * Sources of exchange rates, each with its own protocol. They validate the format of a price. For Kraken, they also
 * compare the price with the spread. `selectRate` decides whether a price is plausible. The names of a coin at a source
 * come from `payments.json`.
 */
import { type Dispatcher, request } from 'undici';
import {
  callMonitored,
  createCredentialError,
  NO_SERVICE_MONITOR,
  type ServiceMonitor,
  sanitizeThirdPartyText,
} from '#application';
import type { RateNames } from '#domain';
import { money, type PicoUsd, parseJsonWithNumbersAsText } from '#kernel';
import { USER_AGENT } from '../http/user-agent.ts';

/** Maximum distance of Kraken's last trade from the spread, in percent. */
const NEAR_PERCENT = 2n;
/** Maximum time by which the clock of a source may be ahead of the gateway's clock. */
const MAX_CLOCK_SKEW_MS = 60_000;

export interface TimedPrice {
  readonly price: PicoUsd;
  /** Time of the price, in milliseconds since 1970. */
  readonly at: number;
}

export interface RateSource {
  readonly name: string;
  /** Name and address: after a change of the address, earlier quotes do not count. */
  readonly key: string;
  /** Minimum time between two fetches of a coin. */
  readonly intervalMs: number;
  /** Maximum age of a usable quote. */
  readonly freshMs: number;
  canQuote(names: RateNames): boolean;
  /** @throws Error if the source returns no valid price in time */
  fetchPrice(names: RateNames, options: RateRequestOptions): Promise<TimedPrice>;
}

export interface RateRequestOptions {
  readonly now: number;
  /** Maximum time for the complete response. */
  readonly timeoutMs: number;
  /** Limits the size of the response. */
  readonly dispatcher: Dispatcher;
}

/** A price before its validation. */
interface ReportedPrice {
  readonly price: unknown;
  /** Time of the price in seconds since 1970, if the source reports it. */
  readonly seconds?: unknown;
}

interface KrakenResponse {
  readonly error?: unknown;
  readonly result?: Readonly<Record<string, Readonly<Record<'a' | 'b' | 'c', readonly unknown[]>>>>;
}

interface Protocol<Name> {
  readonly name: string;
  readonly intervalMs: number;
  readonly freshMs: number;
  findName(names: RateNames): Name | undefined;
  formatPath(name: Name): string;
  parseResponse(response: unknown, name: Name): ReportedPrice;
}

/**
 * Kraken: `GET /0/public/Ticker?pair=XBTUSD`. In `result.XXBTZUSD`, `a` is the `ask` price, `b` the bid price and `c`
 * the last trade, each a list that starts with the price. Errors are in `error`, with status 200. Prices have no time.
 * The public API accepts about one call per second from an IP address.
 */
const krakenProtocol: Protocol<readonly [requestName: string, responseName: string]> = {
  name: 'kraken',
  intervalMs: 10_000,
  freshMs: 60_000,
  findName: ({ kraken }) => kraken,
  formatPath: ([requestName]) => `/0/public/Ticker?pair=${encodeURIComponent(requestName)}`,
  parseResponse(response, [, responseName]) {
    const { error, result } = response as KrakenResponse;
    if (Array.isArray(error) && error.length > 0)
      throw new Error(`error response: ${sanitizeThirdPartyText(String(error[0]))}`);
    const { a, b, c } = result?.[responseName] ?? {};
    const [ask, bid, last] = [parsePrice(a?.[0]), parsePrice(b?.[0]), parsePrice(c?.[0])];
    const isNear = last * 100n >= bid * (100n - NEAR_PERCENT) && last * 100n <= ask * (100n + NEAR_PERCENT);
    if (bid > ask || !isNear) throw new Error('the spread is negative, or the last trade is too far from it');
    return { price: c?.[0] };
  },
};

/**
 * Coinbase: `GET /v2/prices/BTC-USD/spot`. The price is `data.amount` in `data.currency` for one `data.base`; it has
 * no time. The documented limit is 10,000 calls per hour for a key; calls without one have no documented limit.
 */
const coinbaseProtocol: Protocol<string> = {
  name: 'coinbase',
  intervalMs: 10_000,
  freshMs: 60_000,
  findName: ({ coinbase }) => coinbase,
  formatPath: (pair) => `/v2/prices/${encodeURIComponent(pair)}/spot`,
  parseResponse(response, pair) {
    const { data } = response as { data?: { amount?: unknown; base?: unknown; currency?: unknown } };
    if (`${data?.base}-${data?.currency}` !== pair) throw new Error('the price is for another pair');
    return { price: data?.amount };
  },
};

/**
 * CoinGecko: `GET /api/v3/simple/price`. The response has, by id, the price as a JSON number and the time of its last
 * update in seconds. The public API updates prices every minute and rejects more than a few calls per minute. A key of
 * the free plan allows 30 calls per minute and 10,000 per month.
 */
const coinGeckoProtocol: Protocol<string> = {
  name: 'coingecko',
  intervalMs: 60_000,
  freshMs: 180_000,
  findName: ({ coingecko }) => coingecko,
  formatPath: (id) =>
    `/api/v3/simple/price?ids=${encodeURIComponent(id)}&vs_currencies=usd&include_last_updated_at=true&precision=full`,
  parseResponse(response, id) {
    const { usd, last_updated_at } =
      (response as Readonly<Record<string, Readonly<Record<string, unknown>>>>)[id] ?? {};
    return { price: usd, seconds: String(last_updated_at) };
  },
};

export const createKrakenSource = (url: string): RateSource => createSource(krakenProtocol, url);

export const createCoinbaseSource = (url: string): RateSource => createSource(coinbaseProtocol, url);

/**
 * @param getKey returns the API key, if any. Paid plans have their own host and header.
 * @param monitor gets what the responses show about the key
 */
export function createCoinGeckoSource(
  url: string,
  getKey: () => string | undefined = () => undefined,
  monitor = NO_SERVICE_MONITOR,
): RateSource {
  const plan = new URL(url).hostname.startsWith('pro-') ? 'pro' : 'demo';
  const getHeaders = () => {
    const key = getKey();
    return key === undefined ? {} : { [`x-cg-${plan}-api-key`]: key };
  };
  return createSource(coinGeckoProtocol, url, getHeaders, monitor);
}

type Headers = Readonly<Record<string, string>>;

function createSource<Name>(
  protocol: Protocol<Name>,
  url: string,
  getHeaders: () => Headers = () => ({}),
  monitor: ServiceMonitor = NO_SERVICE_MONITOR,
): RateSource {
  const { name, intervalMs, freshMs, findName: nameOf, formatPath, parseResponse } = protocol;
  const { host, pathname } = new URL(url); // without credentials
  return {
    name,
    key: `${name} ${host}${pathname}`,
    intervalMs,
    freshMs,
    canQuote: (names) => nameOf(names) !== undefined,
    async fetchPrice(names, options) {
      const { now } = options;
      const pairName = nameOf(names);
      if (pairName === undefined) throw new Error(`${name} does not quote this coin`);
      const { data, ageMs } = await callMonitored(monitor, () =>
        fetchJson(`${url}${formatPath(pairName)}`, getHeaders(), options),
      );
      const { price, seconds } = parseResponse(data, pairName);
      return { price: parsePrice(price), at: seconds === undefined ? now - ageMs : parseTimestamp(seconds, now) };
    },
  };
}

/** Returns the response with numbers as text, and its age in HTTP caches. */
async function fetchJson(url: string, headers: Headers, { dispatcher, timeoutMs }: RateRequestOptions) {
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await request(url, {
    dispatcher,
    signal,
    headers: { accept: 'application/json', 'user-agent': USER_AGENT, ...headers },
  });
  const { statusCode, body } = response;
  if (statusCode !== 200) {
    await body.dump();
    if (statusCode === 401) throw createCredentialError(`status ${statusCode}`, statusCode);
    throw new Error(`status ${statusCode}`);
  }
  const data = parseJsonWithNumbersAsText(await body.text());
  if (typeof data !== 'object' || data === null) throw new Error('the response is not an object');
  const age = String(response.headers.age ?? 0);
  return { data, ageMs: /^\d{1,9}$/.test(age) ? Number(age) * 1000 : 0 };
}

/**
 * @throws Error unless the price is a decimal without an exponent, of at least one pico-USD, with at most 12 digits
 * before the point and 30 after it
 */
function parsePrice(text: unknown): PicoUsd {
  if (typeof text !== 'string' || !/^\d{1,12}(\.\d{1,30})?$/.test(text)) throw new Error('invalid price');
  // Decimals below a pico-USD are dropped.
  const price = money.parseUsd(text.replace(/(\.\d{12})\d+$/, '$1'));
  if (price <= 0n) throw new Error('invalid price');
  return price;
}

function parseTimestamp(seconds: unknown, now: number): number {
  const at = /^\d{1,11}$/.test(String(seconds)) ? Number(seconds) * 1000 : Number.NaN;
  if (!(at <= now + MAX_CLOCK_SKEW_MS)) throw new Error('invalid time of the price');
  return Math.min(at, now);
}
