import { Agent, type Dispatcher, request } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamFailure } from '#application';
import { COINS, type Coin } from '#domain';

const TIMEOUT_MS = 5_000;
/** A rate is asked for again after this long, a source that failed after this long, */
const REFRESH_MS = 30_000;
const RETRY_MS = 3_000;
/** and no longer used after this long: rather no invoice than a guess. */
const STALE_MS = 600_000;
/** Two sources that differ by more than this many hundredths are not believed. */
const MAX_DIFFERENCE_PERCENT = 2;

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

/** The rate of the first source that has a fresh one, as long as no other fresh source contradicts it. */
export class MarketRates extends ExchangeRates {
  /** By source and coin, as all that is remembered. */
  private readonly quotes = new Map<string, Quote>();
  private readonly failedAt = new Map<string, number>();
  private readonly dispatcher = new Agent();

  /** @param alarm called for each source that fails, also while another one answers */
  constructor(
    private readonly sources: readonly Source[],
    private readonly clock: Clock,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async usdPer(wanted: Coin): Promise<Rate> {
    const coin = COINS[wanted].ratedAs ?? wanted;
    await Promise.all(this.sources.map((source) => this.refresh(source, coin)));
    const fresh = this.sources.flatMap(({ name }) => {
      const quote = this.quotes.get(`${name} ${coin}`);
      if (!quote || this.age(quote) >= STALE_MS) return [];
      return [{ value: quote.value, source: name, at: new Date(quote.at).toISOString() }];
    });
    const [first, ...others] = fresh;
    if (!first) throw new UpstreamFailure('upstream_unavailable', 'No exchange rate is available at the moment');
    for (const other of others) {
      const difference = Math.abs(Number(other.value) / Number(first.value) - 1) * 100;
      if (difference > MAX_DIFFERENCE_PERCENT) {
        throw new UpstreamFailure('upstream_unavailable', 'The sources of exchange rates contradict each other');
      }
    }
    return first;
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  /** A source that fails keeps its last quote until that is stale. */
  private async refresh(source: Source, coin: Coin): Promise<void> {
    const name = `${source.name} ${coin}`;
    const known = this.quotes.get(name);
    const now = this.clock.milliseconds();
    if (known && this.age(known) < REFRESH_MS) return;
    if (now - (this.failedAt.get(name) ?? 0) < RETRY_MS) return;
    try {
      const value = await source.fetch(coin, this.dispatcher);
      if (value !== undefined) this.quotes.set(name, { value, at: now });
    } catch (error) {
      this.failedAt.set(name, now);
      this.alarm(`the exchange rates of ${source.name} cannot be had`, error);
    }
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
