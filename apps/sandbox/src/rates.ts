/**
 * Three exchange rate sources: Kraken, Coinbase and CoinGecko. They quote the true rate of a coin, or an override for
 * one source and one coin. The formats are those of their public documentation: Kraken's `GET /0/public/Ticker`,
 * Coinbase's `GET /v2/prices/{pair}/spot`, CoinGecko's `GET /api/v3/simple/price`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isJsonObject, money, toJsonNumber } from '#kernel';
import { type Handler, HttpError, parseObject, type Routes } from './router.ts';

const SOURCES = ['kraken', 'coinbase', 'coingecko'] as const;
type Source = (typeof SOURCES)[number];

/** The names of a coin at the sources. */
interface CoinNames {
  /** Every name that Kraken accepts for the pair; its response contains the first one. */
  readonly kraken: readonly string[];
  readonly coinbase?: string;
  readonly coingecko: string;
}

/** Liquid bitcoin is not listed: the gateway uses the rate of bitcoin for it. */
const COIN_NAMES: Readonly<Record<string, CoinNames>> = {
  BTC: { kraken: ['XXBTZUSD', 'XBTUSD', 'XBT/USD'], coinbase: 'BTC-USD', coingecko: 'bitcoin' },
  LTC: { kraken: ['XLTCZUSD', 'LTCUSD', 'LTC/USD'], coinbase: 'LTC-USD', coingecko: 'litecoin' },
  XMR: { kraken: ['XXMRZUSD', 'XMRUSD', 'XMR/USD'], coingecko: 'monero' },
};

/** Initial true rates in USD. Other coins have no rate until one is set. */
const INITIAL_RATES = { BTC: '100000', LTC: '100', XMR: '200' };

function getNames(coin: string): CoinNames {
  const configured = Object.hasOwn(COIN_NAMES, coin) ? COIN_NAMES[coin] : undefined;
  return configured ?? { kraken: [`${coin}USD`], coinbase: `${coin}-USD`, coingecko: coin.toLowerCase() };
}

const DECIMALS = 8;
const ONE = 10n ** BigInt(DECIMALS);
/** Minimum number of decimals in Kraken's prices; Coinbase has at least two. */
const KRAKEN_DECIMALS = 5;
const MAX_SECONDS = 86_400;
const MAX_DELAY_MS = 60_000;

/** What a source quotes for a coin instead of the true rate. */
interface QuoteOverride {
  readonly isDown: boolean;
  /** The source responds with an invalid price. */
  readonly isInvalid: boolean;
  /** In units of 10⁻⁸ USD. */
  readonly usd: bigint | undefined;
  /** Factor on the true rate, in units of 10⁻⁸. */
  readonly factor: bigint | undefined;
  /** The reported age of the price; only CoinGecko reports one. */
  readonly ageSeconds: number;
  readonly delayMs: number;
}

const NO_OVERRIDE: QuoteOverride = {
  isDown: false,
  isInvalid: false,
  usd: undefined,
  factor: undefined,
  ageSeconds: 0,
  delayMs: 0,
};

/** The true rates of coins, and the overrides of the sources. */
class SimulatedRates {
  private readonly trueRates = new Map(
    Object.entries(INITIAL_RATES).map(([coin, usd]) => [coin, parseRate(coin, usd)]),
  );
  private readonly overrides = new Map<string, QuoteOverride>();
  /** Sources that fail for all coins. */
  private readonly failing = new Set<Source>();

  /** Returns the first coin whose names match; undefined for none. */
  findCoin(isMatch: (names: CoinNames) => boolean | undefined): string | undefined {
    return [...this.trueRates.keys()].find((coin) => isMatch(getNames(coin)));
  }

  hasQuote(source: Source, coin: string): boolean {
    return this.trueRates.has(coin) && getNames(coin)[source] !== undefined;
  }

  /**
   * Returns the quote of a source for a coin, after the delay of that quote.
   * @throws HttpError 503 if the source is set to fail for the coin
   */
  async quote(source: Source, coin: string): Promise<{ readonly rate: bigint } & QuoteOverride> {
    const quoteOverride = this.getOverride(source, coin);
    if (quoteOverride.delayMs > 0) await pause(quoteOverride.delayMs, undefined, { ref: false });
    if (quoteOverride.isDown) throw new HttpError(503, { error: 'this source is set to fail' });
    return { ...quoteOverride, rate: this.calculateRate(source, coin) };
  }

  /** Sets the true rate of a coin and removes its overrides. Sources that were set to fail for all coins work again. */
  setTrueRate(coin: string, rate: bigint): void {
    this.trueRates.set(coin, rate);
    this.failing.clear();
    for (const source of SOURCES) this.overrides.delete(`${source} ${coin}`);
  }

  setOverride(source: Source, coin: string, quoteOverride: QuoteOverride): void {
    this.failing.delete(source);
    this.overrides.set(`${source} ${coin}`, quoteOverride);
  }

  fail(source: Source): void {
    this.failing.add(source);
  }

  /** Returns the rates by source and coin; null if the source is set to fail for the coin. */
  toRatesJson() {
    return Object.fromEntries(
      SOURCES.map((source) => {
        const quoted = [...this.trueRates.keys()].filter((coin) => this.hasQuote(source, coin));
        const formatQuote = (coin: string) =>
          this.getOverride(source, coin).isDown ? null : formatRate(this.calculateRate(source, coin), 2);
        return [source, Object.fromEntries(quoted.map((coin) => [coin, formatQuote(coin)]))];
      }),
    );
  }

  private getOverride(source: Source, coin: string): QuoteOverride {
    const quoteOverride = this.overrides.get(`${source} ${coin}`) ?? NO_OVERRIDE;
    return this.failing.has(source) ? { ...quoteOverride, isDown: true } : quoteOverride;
  }

  private calculateRate(source: Source, coin: string): bigint {
    const { usd, factor = ONE } = this.getOverride(source, coin);
    return usd ?? ((this.trueRates.get(coin) ?? 0n) * factor) / ONE;
  }
}

export function rateRoutes(): Routes {
  const prices = new SimulatedRates();
  return {
    'GET /kraken/0/public/Ticker': createKrakenHandler(prices),
    'GET /coinbase/v2/prices/*': createCoinbaseHandler(prices),
    'GET /coingecko/api/v3/simple/price': createCoinGeckoHandler(prices),
    'GET /rates': (call) => call.sendJson(200, prices.toRatesJson()),
    'PUT /rates': async (call) => {
      for (const change of parseChanges(parseObject(await call.readText()) ?? reject('the body must be a JSON object')))
        change(prices);
      call.sendJson(200, prices.toRatesJson());
    },
  };
}

// sources -----------------------------------------------------------------------------------------------------------

function createKrakenHandler(prices: SimulatedRates): Handler {
  return async (call) => {
    const pairs = call.query.get('pair')?.split(',') ?? ['XXBTZUSD'];
    const coins = pairs.map((pair) => prices.findCoin((names) => names.kraken.includes(pair)));
    // Kraken's error responses have status 200 as well.
    if (!coins.every((coin) => coin !== undefined)) return call.sendJson(200, { error: ['EQuery:Unknown asset pair'] });
    const tickers = coins.map(async (coin) => [getNames(coin).kraken[0], toTicker(await prices.quote('kraken', coin))]);
    call.sendJson(200, { error: [], result: Object.fromEntries(await Promise.all(tickers)) });
  };
}

function toTicker({ rate, isInvalid }: { readonly rate: bigint; readonly isInvalid: boolean }) {
  const price = formatRate(rate, KRAKEN_DECIMALS);
  // A valid quote has no `ask` below its bid.
  const bid = isInvalid ? formatRate(rate * 2n, KRAKEN_DECIMALS) : price;
  return {
    a: [price, '1', '1.000'],
    b: [bid, '1', '1.000'],
    c: [price, '0.00100000'],
    v: ['1000.00000000', '2000.00000000'],
    p: [price, price],
    t: [10_000, 20_000],
    l: [price, price],
    h: [price, price],
    o: price,
  };
}

function createCoinbaseHandler(prices: SimulatedRates): Handler {
  return async (call) => {
    const [pair = '', what] = call.parameter.split('/');
    const coin = prices.findCoin((names) => names.coinbase === pair);
    if (!coin || what !== 'spot')
      return call.sendJson(404, { errors: [{ id: 'not_found', message: 'Invalid base currency' }] });
    const { rate, isInvalid } = await prices.quote('coinbase', coin);
    call.sendJson(200, { data: { amount: isInvalid ? 'NaN' : formatRate(rate, 2), base: coin, currency: 'USD' } });
  };
}

/** Unknown ids and currencies are left out of the response. */
function createCoinGeckoHandler(prices: SimulatedRates): Handler {
  return async (call) => {
    const ids = call.query.get('ids')?.split(',') ?? [];
    const inUsd = call.query.get('vs_currencies')?.split(',').includes('usd');
    const dated = call.query.get('include_last_updated_at') === 'true';
    const coins = ids.flatMap((id) => prices.findCoin((names) => names.coingecko === id) ?? []);
    const entries = coins.map(async (coin) => {
      const { rate, isInvalid, ageSeconds } = await prices.quote('coingecko', coin);
      const usd = isInvalid ? null : toJsonNumber(money.formatScaled(rate, DECIMALS));
      const last_updated_at = Math.floor(Date.now() / 1000) - ageSeconds;
      return [getNames(coin).coingecko, { ...(inUsd ? { usd } : {}), ...(dated ? { last_updated_at } : {}) }];
    });
    call.sendJson(200, Object.fromEntries(await Promise.all(entries)));
  };
}

/** Formats a rate with at least this many decimals. */
function formatRate(rate: bigint, minDecimals: number): string {
  const [integer, fraction = ''] = money.formatScaled(rate, DECIMALS).split('.');
  return `${integer}.${fraction.padEnd(minDecimals, '0')}`;
}

// settings ----------------------------------------------------------------------------------------------------------

type Change = (prices: SimulatedRates) => void;

/**
 * Parses the body of `PUT /rates`. `<coin>_usd` sets the true rate of a coin. The name of a source sets its override: a
 * rate for bitcoin, or an object of overrides by coin; `null` makes the source fail for all coins.
 * @throws HttpError 400
 */
function parseChanges(body: Readonly<Record<string, unknown>>): readonly Change[] {
  return Object.entries(body).flatMap(([name, value]): readonly Change[] => {
    const [, coin] = /^([a-z][a-z0-9]{1,9})_usd$/.exec(name) ?? [];
    if (coin !== undefined) {
      const rate = parseRate(name, value);
      return [(prices) => prices.setTrueRate(coin.toUpperCase(), rate)];
    }
    const source =
      SOURCES.find((candidate) => candidate === name) ??
      reject(`unknown source "${name}"; use kraken, coinbase, coingecko or <coin>_usd`);
    if (value === null) return [(prices) => prices.fail(source)];
    const byCoin = isJsonObject(value) ? Object.entries(value) : [['BTC', value] as const];
    return byCoin.map(([coinCode, setting]) =>
      createOverrideChange(source, coinCode, parseOverride(coinCode, setting)),
    );
  });
}

function createOverrideChange(source: Source, coin: string, quoteOverride: QuoteOverride): Change {
  return (prices) => {
    if (!prices.hasQuote(source, coin)) reject(`${source} does not quote "${coin}"`);
    prices.setOverride(source, coin, quoteOverride);
  };
}

function parseOverride(coin: string, value: unknown): QuoteOverride {
  if (value === null) return { ...NO_OVERRIDE, isDown: true };
  if (!isJsonObject(value)) return { ...NO_OVERRIDE, usd: parseRate(coin, value) };
  const { usd, times, age_s = 0, delay_ms = 0, nonsense = false, ...unknown } = value;
  for (const name in unknown) reject(`unknown option "${name}"`);
  if (typeof nonsense !== 'boolean') reject('"nonsense" must be true or false');
  return {
    ...NO_OVERRIDE,
    isInvalid: nonsense,
    usd: usd === undefined ? undefined : parseRate('usd', usd),
    factor: times === undefined ? undefined : parseRate('times', times),
    ageSeconds: parseInteger('age_s', age_s, MAX_SECONDS),
    delayMs: parseInteger('delay_ms', delay_ms, MAX_DELAY_MS),
  };
}

function parseRate(name: string, value: unknown): bigint {
  const valid = typeof value === 'string' && /^\d{1,12}(\.\d{1,8})?$/.test(value);
  const rate = valid ? money.parseScaled(value, DECIMALS) : 0n;
  return rate > 0n
    ? rate
    : reject(`"${name}" must be a decimal string above 0 and below 10¹², with at most ${DECIMALS} decimals`);
}

function parseInteger(name: string, value: unknown, max: number): number {
  const valid = Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max;
  return valid ? Number(value) : reject(`"${name}" must be an integer from 0 to ${max}`);
}

function reject(error: string): never {
  throw new HttpError(400, { error });
}
