/**
 * Three sources of exchange rates, Kraken, Coinbase and CoinGecko, which say what they are told to: the truth, or for a
 * source and a coin something else. Facts from their public documentation: Kraken's `GET /0/public/Ticker`, Coinbase's
 * `GET /v2/prices/{pair}/spot`, CoinGecko's `GET /api/v3/simple/price`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { money, toJsonNumber } from '#kernel';
import { type Handler, parseObject, Refusal, type Routes } from './router.ts';

const SOURCES = ['kraken', 'coinbase', 'coingecko'] as const;
type Source = (typeof SOURCES)[number];

/** A coin's names at the sources. */
interface Names {
  /** Every name that Kraken knows the pair by; it answers with the first. */
  readonly kraken: readonly string[];
  readonly coinbase?: string;
  readonly coingecko: string;
}

/** Liquid bitcoin has the price of bitcoin. */
const NAMES: Readonly<Record<string, Names>> = {
  BTC: { kraken: ['XXBTZUSD', 'XBTUSD', 'XBT/USD'], coinbase: 'BTC-USD', coingecko: 'bitcoin' },
  LTC: { kraken: ['XLTCZUSD', 'LTCUSD', 'LTC/USD'], coinbase: 'LTC-USD', coingecko: 'litecoin' },
  XMR: { kraken: ['XXMRZUSD', 'XMRUSD', 'XMR/USD'], coingecko: 'monero' },
};

/** USD for one, at first. Any other coin gets a rate when it is set. */
const FIRST_RATES = { BTC: '100000', LTC: '100', XMR: '200' };

function namesOf(coin: string): Names {
  const known = Object.hasOwn(NAMES, coin) ? NAMES[coin] : undefined;
  return known ?? { kraken: [`${coin}USD`], coinbase: `${coin}-USD`, coingecko: coin.toLowerCase() };
}

const DECIMALS = 8;
const ONE = 10n ** BigInt(DECIMALS);
/** Kraken prints at least so many decimals, Coinbase two. */
const KRAKEN_DECIMALS = 5;
const MAX_SECONDS = 86_400;
const MAX_DELAY_MS = 60_000;

/** What a source says of a coin instead of the truth. */
interface Said {
  readonly down: boolean;
  /** Answers with what is no price. */
  readonly nonsense: boolean;
  /** In units of 10⁻⁸ USD. */
  readonly usd: bigint | undefined;
  /** Times the truth, in units of 10⁻⁸. */
  readonly times: bigint | undefined;
  /** How old it says its price is; only CoinGecko does. */
  readonly ageSeconds: number;
  readonly delayMs: number;
}

const HONEST: Said = {
  ...{ down: false, nonsense: false, usd: undefined, times: undefined },
  ...{ ageSeconds: 0, delayMs: 0 },
};

/** What coins are worth, and what the sources say instead. */
class Prices {
  private readonly truth = new Map(Object.entries(FIRST_RATES).map(([coin, usd]) => [coin, rateIn(coin, usd)]));
  private readonly said = new Map<string, Said>();
  /** Sources that fail for all coins. */
  private readonly failing = new Set<Source>();

  /** The coin that is called so at a source. */
  named(isIt: (names: Names) => boolean | undefined): string | undefined {
    return [...this.truth.keys()].find((coin) => isIt(namesOf(coin)));
  }

  quotes(source: Source, coin: string): boolean {
    return this.truth.has(coin) && namesOf(coin)[source] !== undefined;
  }

  /** What a source answers with, when it does. */
  async quote(source: Source, coin: string): Promise<{ readonly rate: bigint } & Said> {
    const said = this.saidOf(source, coin);
    if (said.delayMs > 0) await pause(said.delayMs, undefined, { ref: false });
    if (said.down) throw new Refusal(503, { error: 'this source fails, as the sandbox was instructed' });
    return { ...said, rate: this.rate(source, coin) };
  }

  /** All sources say the truth again. */
  settle(coin: string, rate: bigint): void {
    this.truth.set(coin, rate);
    this.failing.clear();
    for (const source of SOURCES) this.said.delete(`${source} ${coin}`);
  }

  say(source: Source, coin: string, said: Said): void {
    this.failing.delete(source);
    this.said.set(`${source} ${coin}`, said);
  }

  fail(source: Source): void {
    this.failing.add(source);
  }

  /** By source and coin; null where the source fails. */
  printed() {
    return Object.fromEntries(
      SOURCES.map((source) => {
        const quoted = [...this.truth.keys()].filter((coin) => this.quotes(source, coin));
        const text = (coin: string) => (this.saidOf(source, coin).down ? null : decimals(this.rate(source, coin), 2));
        return [source, Object.fromEntries(quoted.map((coin) => [coin, text(coin)]))];
      }),
    );
  }

  private saidOf(source: Source, coin: string): Said {
    const said = this.said.get(`${source} ${coin}`) ?? HONEST;
    return this.failing.has(source) ? { ...said, down: true } : said;
  }

  private rate(source: Source, coin: string): bigint {
    const { usd, times = ONE } = this.saidOf(source, coin);
    return usd ?? ((this.truth.get(coin) ?? 0n) * times) / ONE;
  }
}

export function rateRoutes(): Routes {
  const prices = new Prices();
  return {
    'GET /kraken/0/public/Ticker': krakenTicker(prices),
    'GET /coinbase/v2/prices/*': coinbaseSpot(prices),
    'GET /coingecko/api/v3/simple/price': coinGeckoPrice(prices),
    'GET /rates': (call) => call.json(200, prices.printed()),
    'PUT /rates': async (call) => {
      for (const change of changesIn(parseObject(await call.text()) ?? refuse('the body must be a JSON object')))
        change(prices);
      call.json(200, prices.printed());
    },
  };
}

// the sources -------------------------------------------------------------------------------------------------------

function krakenTicker(prices: Prices): Handler {
  return async (call) => {
    const pairs = call.query.get('pair')?.split(',') ?? ['XXBTZUSD'];
    const coins = pairs.map((pair) => prices.named((names) => names.kraken.includes(pair)));
    // Kraken answers errors with status 200 as well.
    if (!coins.every((coin) => coin !== undefined)) return call.json(200, { error: ['EQuery:Unknown asset pair'] });
    const tickers = coins.map(async (coin) => [namesOf(coin).kraken[0], tickerOf(await prices.quote('kraken', coin))]);
    call.json(200, { error: [], result: Object.fromEntries(await Promise.all(tickers)) });
  };
}

function tickerOf({ rate, nonsense }: { readonly rate: bigint; readonly nonsense: boolean }) {
  const price = decimals(rate, KRAKEN_DECIMALS);
  // Nobody asks for less than is bid.
  const bid = nonsense ? decimals(rate * 2n, KRAKEN_DECIMALS) : price;
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

function coinbaseSpot(prices: Prices): Handler {
  return async (call) => {
    const [pair = '', what] = call.parameter.split('/');
    const coin = prices.named((names) => names.coinbase === pair);
    if (!coin || what !== 'spot')
      return call.json(404, { errors: [{ id: 'not_found', message: 'Invalid base currency' }] });
    const { rate, nonsense } = await prices.quote('coinbase', coin);
    call.json(200, { data: { amount: nonsense ? 'NaN' : decimals(rate, 2), base: coin, currency: 'USD' } });
  };
}

/** Ids and currencies that are unknown are left out of the answer. */
function coinGeckoPrice(prices: Prices): Handler {
  return async (call) => {
    const ids = call.query.get('ids')?.split(',') ?? [];
    const inUsd = call.query.get('vs_currencies')?.split(',').includes('usd');
    const dated = call.query.get('include_last_updated_at') === 'true';
    const coins = ids.flatMap((id) => prices.named((names) => names.coingecko === id) ?? []);
    const found = coins.map(async (coin) => {
      const { rate, nonsense, ageSeconds } = await prices.quote('coingecko', coin);
      const usd = nonsense ? null : toJsonNumber(money.formatScaled(rate, DECIMALS));
      const last_updated_at = Math.floor(Date.now() / 1000) - ageSeconds;
      return [namesOf(coin).coingecko, { ...(inUsd ? { usd } : {}), ...(dated ? { last_updated_at } : {}) }];
    });
    call.json(200, Object.fromEntries(await Promise.all(found)));
  };
}

/** Prints a rate with at least so many decimals. */
function decimals(rate: bigint, least: number): string {
  const [whole, fraction = ''] = money.formatScaled(rate, DECIMALS).split('.');
  return `${whole}.${fraction.padEnd(least, '0')}`;
}

// what they are told ------------------------------------------------------------------------------------------------

type Change = (prices: Prices) => void;

/** `btc_usd` is what all sources say of bitcoin; a source by its name says what stands there, of bitcoin or by coin. */
function changesIn(body: Readonly<Record<string, unknown>>): readonly Change[] {
  return Object.entries(body).flatMap(([name, value]): readonly Change[] => {
    const [, coin] = /^([a-z][a-z0-9]{1,9})_usd$/.exec(name) ?? [];
    if (coin !== undefined) {
      const rate = rateIn(name, value);
      return [(prices) => prices.settle(coin.toUpperCase(), rate)];
    }
    const source = SOURCES.find((each) => each === name) ?? refuse(`there is no source "${name}"`);
    if (value === null) return [(prices) => prices.fail(source)];
    const byCoin = isFields(value) ? Object.entries(value) : [['BTC', value] as const];
    return byCoin.map(([of, said]) => sayingOf(source, of, saidIn(of, said)));
  });
}

function sayingOf(source: Source, coin: string, said: Said): Change {
  return (prices) => {
    if (!prices.quotes(source, coin)) refuse(`${source} does not quote "${coin}"`);
    prices.say(source, coin, said);
  };
}

function saidIn(coin: string, value: unknown): Said {
  if (value === null) return { ...HONEST, down: true };
  if (!isFields(value)) return { ...HONEST, usd: rateIn(coin, value) };
  const { usd, times, age_s = 0, delay_ms = 0, nonsense = false, ...unknown } = value;
  for (const name in unknown) refuse(`there is no option "${name}"`);
  if (typeof nonsense !== 'boolean') refuse('"nonsense" must be true or false');
  return {
    ...HONEST,
    nonsense,
    usd: usd === undefined ? undefined : rateIn('usd', usd),
    times: times === undefined ? undefined : rateIn('times', times),
    ageSeconds: wholeIn('age_s', age_s, MAX_SECONDS),
    delayMs: wholeIn('delay_ms', delay_ms, MAX_DELAY_MS),
  };
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function rateIn(name: string, value: unknown): bigint {
  const valid = typeof value === 'string' && /^\d{1,12}(\.\d{1,8})?$/.test(value);
  const rate = valid ? money.parseScaled(value, DECIMALS) : 0n;
  return rate > 0n ? rate : refuse(`"${name}" must be a decimal string above 0 with at most ${DECIMALS} decimals`);
}

function wholeIn(name: string, value: unknown, most: number): number {
  const valid = Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most;
  return valid ? Number(value) : refuse(`"${name}" must be a whole number up to ${most}`);
}

function refuse(error: string): never {
  throw new Refusal(400, { error });
}
