/**
 * Who is asked what a coin costs, each over its own protocol. Nothing that they say is believed here; but what is no price
 * is none. A coin's names are data.
 */
import { type Dispatcher, request } from 'undici';
import { sanitizeThirdPartyText } from '#application';
import type { RateNames } from '#domain';
import { money, type PicoUsd, parseJsonWithNumbersAsText } from '#kernel';
import { USER_AGENT } from '../http/user-agent.ts';

/** By how many hundredths Kraken's last trade may lie outside of what is bid and asked. */
const NEAR_PERCENT = 2n;
/** By how much clocks may differ. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** A price, and when it was so: milliseconds since 1970. */
export interface TimedPrice {
  readonly price: PicoUsd;
  readonly at: number;
}

export interface RateSource {
  readonly name: string;
  /** How long what it said is kept before it is asked again, and how old it may be to count. */
  readonly cacheMs: number;
  readonly freshMs: number;
  canQuote(names: RateNames): boolean;
  /** @throws Error when it says no price, or nothing in time */
  fetchPrice(names: RateNames, options: RateRequestOptions): Promise<TimedPrice>;
}

/** How a source is asked. */
export interface RateRequestOptions {
  readonly now: number;
  /** Within which the whole answer must have come. */
  readonly timeoutMs: number;
  /** Bounds the answer's size. */
  readonly dispatcher: Dispatcher;
}

/** What of an answer is said to be the price. */
interface ReportedPrice {
  readonly price: unknown;
  /** Seconds since 1970, where the source says it. */
  readonly seconds?: unknown;
}

interface KrakenResponse {
  readonly error?: unknown;
  readonly result?: Readonly<Record<string, Readonly<Record<'a' | 'b' | 'c', readonly unknown[]>>>>;
}

interface Protocol<Name> {
  readonly name: string;
  readonly cacheMs: number;
  readonly freshMs: number;
  findName(names: RateNames): Name | undefined;
  formatPath(name: Name): string;
  parseResponse(response: unknown, name: Name): ReportedPrice;
}

/**
 * Kraken: `GET /0/public/Ticker?pair=XBTUSD`; in `result.XXBTZUSD` are `a` ask, `b` bid and `c` last trade, each a list that
 * begins with the price. What is wrong stands in `error`, with status 200. It does not say of when its prices are.
 */
const krakenProtocol: Protocol<readonly [requestName: string, responseName: string]> = {
  ...{ name: 'kraken', cacheMs: 30_000, freshMs: 60_000 },
  findName: ({ kraken }) => kraken,
  formatPath: ([requestName]) => `/0/public/Ticker?pair=${encodeURIComponent(requestName)}`,
  parseResponse(response, [, responseName]) {
    const { error, result } = response as KrakenResponse;
    if (Array.isArray(error) && error.length > 0)
      throw new Error(`it says ${sanitizeThirdPartyText(String(error[0]))}`);
    const { a, b, c } = result?.[responseName] ?? {};
    const [ask, bid, last] = [parsePrice(a?.[0]), parsePrice(b?.[0]), parsePrice(c?.[0])];
    const isNear = last * 100n >= bid * (100n - NEAR_PERCENT) && last * 100n <= ask * (100n + NEAR_PERCENT);
    if (bid > ask || !isNear) throw new Error('the last trade is not between what is bid and asked');
    return { price: c?.[0] };
  },
};

/** Coinbase: `GET /v2/prices/BTC-USD/spot`, `data.amount` in `data.currency` for one `data.base`, without a time. */
const coinbaseProtocol: Protocol<string> = {
  ...{ name: 'coinbase', cacheMs: 30_000, freshMs: 60_000 },
  findName: ({ coinbase }) => coinbase,
  formatPath: (pair) => `/v2/prices/${encodeURIComponent(pair)}/spot`,
  parseResponse(response, pair) {
    const { data } = response as { data?: { amount?: unknown; base?: unknown; currency?: unknown } };
    if (`${data?.base}-${data?.currency}` !== pair) throw new Error('the price of something else');
    return { price: data?.amount };
  },
};

/**
 * CoinGecko: `GET /api/v3/simple/price`; by id the price as a JSON number, and the second it was last updated. The public
 * API renews it each minute, and refuses after a few calls in one (with a key of the free plan 30, and 10,000 in a month).
 */
const coinGeckoProtocol: Protocol<string> = {
  ...{ name: 'coingecko', cacheMs: 60_000, freshMs: 180_000 },
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

/** @param key of an account there, if any: a paid one has another header, at an address of its own */
export function createCoinGeckoSource(url: string, key?: string): RateSource {
  const plan = new URL(url).hostname.startsWith('pro-') ? 'pro' : 'demo';
  return createSource(coinGeckoProtocol, url, key === undefined ? {} : { [`x-cg-${plan}-api-key`]: key });
}

type Headers = Readonly<Record<string, string>>;

function createSource<Name>(protocol: Protocol<Name>, url: string, headers: Headers = {}): RateSource {
  const { name, cacheMs, freshMs, findName: nameOf, formatPath, parseResponse } = protocol;
  return {
    ...{ name, cacheMs, freshMs },
    canQuote: (names) => nameOf(names) !== undefined,
    async fetchPrice(names, options) {
      const { now } = options;
      const pairName = nameOf(names);
      if (pairName === undefined) throw new Error(`${name} does not quote it`);
      const { data, ageMs } = await fetchJson(`${url}${formatPath(pairName)}`, headers, options);
      const { price, seconds } = parseResponse(data, pairName);
      return { price: parsePrice(price), at: seconds === undefined ? now - ageMs : parseTimestamp(seconds, now) };
    },
  };
}

/** @returns the answer, its numbers as text, and how long it has lain in a cache on its way */
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
    throw new Error(`status ${statusCode}`);
  }
  const data = parseJsonWithNumbersAsText(await body.text());
  if (typeof data !== 'object' || data === null) throw new Error('no object');
  const age = String(response.headers.age ?? 0);
  return { data, ageMs: /^\d{1,9}$/.test(age) ? Number(age) * 1000 : 0 };
}

/** @throws Error when it is not a plain decimal above 0 with a bearable number of digits */
function parsePrice(text: unknown): PicoUsd {
  if (typeof text !== 'string' || !/^\d{1,12}(\.\d{1,30})?$/.test(text)) throw new Error('no price');
  // More decimals than money has are cut off.
  const price = money.parseUsd(text.replace(/(\.\d{12})\d+$/, '$1'));
  if (price <= 0n) throw new Error('no price');
  return price;
}

function parseTimestamp(seconds: unknown, now: number): number {
  const at = /^\d{1,11}$/.test(String(seconds)) ? Number(seconds) * 1000 : Number.NaN;
  if (!(at <= now + MAX_CLOCK_SKEW_MS)) throw new Error('no time of the price');
  return Math.min(at, now);
}
