import { Agent, type Dispatcher, request } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamFailure } from '#application';
import { COINS, type Coin } from '#domain';

const TIMEOUT_MS = 5_000;
/** A rate is asked for again after this long; after this long a source that failed, and all that are not believed, */
const REFRESH_MS = 30_000;
const RETRY_MS = 3_000;
/** and no longer used after this long: rather no invoice than a guess. */
const STALE_MS = 600_000;
/** Two sources that differ by more than this many hundredths are not believed. */
const MAX_DIFFERENCE_PERCENT = 2;

export interface RateLimits {
  /** Hundredths by which one source alone may differ from what several have agreed on in the last ten minutes. */
  readonly loneRatePercent: number;
}

interface Source {
  readonly name: string;
  /** @returns undefined where it does not quote the coin */
  fetch(coin: Coin, dispatcher: Dispatcher): Promise<string> | undefined;
}

interface Quote {
  readonly value: string;
  readonly at: number;
}

/** Kraken's names of a coin's price in USD: as it is asked for, and as it is answered. */
const KRAKEN_PAIRS: Partial<Record<Coin, readonly [asked: string, answered: string]>> = {
  BTC: ['XBTUSD', 'XXBTZUSD'],
  LTC: ['LTCUSD', 'XLTCZUSD'],
  XMR: ['XMRUSD', 'XXMRZUSD'],
};

/** `GET /0/public/Ticker?pair=XBTUSD`: `result.XXBTZUSD.c[0]` is the last trade. */
export function kraken(url: string): Source {
  return {
    name: 'kraken',
    fetch(coin, dispatcher) {
      const pair = KRAKEN_PAIRS[coin];
      return pair && ticker(url, pair, dispatcher);
    },
  };
}

async function ticker(url: string, [asked, answered]: readonly [string, string], dispatcher: Dispatcher) {
  const { result } = (await get(`${url}/0/public/Ticker?pair=${asked}`, dispatcher)) as {
    result?: Readonly<Record<string, { c?: string[] }>>;
  };
  return positive(result?.[answered]?.c?.[0]);
}

const COINBASE_COINS: ReadonlySet<Coin> = new Set(['BTC', 'LTC']);

/** `GET /v2/prices/BTC-USD/spot`: `data.amount`. */
export function coinbase(url: string): Source {
  return {
    name: 'coinbase',
    fetch: (coin, dispatcher) => (COINBASE_COINS.has(coin) ? spot(url, coin, dispatcher) : undefined),
  };
}

async function spot(url: string, coin: Coin, dispatcher: Dispatcher): Promise<string> {
  const { data } = (await get(`${url}/v2/prices/${coin}-USD/spot`, dispatcher)) as { data?: { amount?: string } };
  return positive(data?.amount);
}

/**
 * The rate of the first source that answers, as long as no other that answers contradicts it. One that is down does not
 * vote; what one says alone is believed as far as it is near to what several have said. Only while all are down does what
 * was known before count on.
 */
export class MarketRates extends ExchangeRates {
  /** By source and coin, as all that is remembered. */
  private readonly quotes = new Map<string, Quote>();
  private readonly failedAt = new Map<string, number>();
  /** By coin: what several sources agreed on last, and the coins whose sources are not believed. */
  private readonly agreed = new Map<Coin, Quote>();
  private readonly doubted = new Set<Coin>();
  private readonly dispatcher = new Agent();

  /** @param alarm called for each source that fails, also while another one answers */
  constructor(
    private readonly sources: readonly Source[],
    private readonly clock: Clock,
    private readonly limits: RateLimits,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async usdPer(wanted: Coin): Promise<Rate> {
    const coin = COINS[wanted].ratedAs ?? wanted;
    await Promise.all(this.sources.map((source) => this.refresh(source, coin)));
    const known = this.sources.flatMap(({ name }) => {
      const quote = this.quotes.get(`${name} ${coin}`);
      return quote && this.age(quote) < STALE_MS ? [{ name, quote }] : [];
    });
    const answering = known.filter(({ name }) => !this.failedAt.has(`${name} ${coin}`));
    const [first, ...others] = answering.length > 0 ? answering : known;
    if (!first) throw new UpstreamFailure('upstream_unavailable', 'No exchange rate is available at the moment');
    const doubt = this.doubtOf(
      coin,
      first.quote,
      others.map(({ quote }) => quote),
    );
    if (doubt !== undefined) {
      this.doubted.add(coin);
      throw new UpstreamFailure('upstream_unavailable', doubt);
    }
    this.doubted.delete(coin);
    if (answering.length > 1) this.agreed.set(coin, first.quote);
    return { value: first.quote.value, source: first.name, at: new Date(first.quote.at).toISOString() };
  }

  /** Why a rate is not believed; undefined when it is. */
  private doubtOf(coin: Coin, rate: Quote, others: readonly Quote[]): string | undefined {
    const isFar = (other: Quote, percent: number) =>
      Math.abs(Number(other.value) / Number(rate.value) - 1) * 100 > percent;
    if (others.some((other) => isFar(other, MAX_DIFFERENCE_PERCENT)))
      return 'The sources of exchange rates contradict each other';
    const agreed = this.agreed.get(coin);
    if (others.length > 0 || !agreed || this.age(agreed) >= STALE_MS) return undefined;
    if (!isFar(agreed, this.limits.loneRatePercent)) return undefined;
    return 'The one source of exchange rates that answers contradicts what was known before';
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  /** A source that fails keeps its last quote until that is stale, for when all fail. */
  private async refresh(source: Source, coin: Coin): Promise<void> {
    const name = `${source.name} ${coin}`;
    const known = this.quotes.get(name);
    const now = this.clock.milliseconds();
    const failedAt = this.failedAt.get(name);
    if (failedAt !== undefined ? now - failedAt < RETRY_MS : known && this.age(known) < this.keptMs(coin)) return;
    try {
      const value = await source.fetch(coin, this.dispatcher);
      this.failedAt.delete(name);
      if (value !== undefined) this.quotes.set(name, { value, at: now });
    } catch (error) {
      this.failedAt.set(name, now);
      this.alarm(`the exchange rates of ${source.name} cannot be had`, error);
    }
  }

  private keptMs(coin: Coin): number {
    return this.doubted.has(coin) ? RETRY_MS : REFRESH_MS;
  }

  private age({ at }: Quote): number {
    return this.clock.milliseconds() - at;
  }
}

async function get(url: string, dispatcher: Dispatcher): Promise<unknown> {
  const { statusCode, body } = await request(url, { dispatcher, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  if (statusCode !== 200) {
    await body.dump();
    throw new Error(`status ${statusCode}`);
  }
  return body.json();
}

function positive(price: unknown): string {
  // More decimals than money has are cut off.
  const rate = String(price).replace(/(\.\d{8})\d+$/, '$1');
  if (typeof price !== 'string' || !/^\d+(\.\d+)?$/.test(rate) || Number(rate) <= 0) throw new Error('no rate');
  return rate;
}
