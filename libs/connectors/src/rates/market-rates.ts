import { Agent, type Dispatcher, request } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamFailure } from '#application';
import type { CoinTerms, RateNames } from '#domain';

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
  fetch(names: RateNames, dispatcher: Dispatcher): Promise<string> | undefined;
}

interface Quote {
  readonly value: string;
  readonly at: number;
}

/** `GET /0/public/Ticker?pair=XBTUSD`: `result.XXBTZUSD.c[0]` is the last trade. */
export function kraken(url: string): Source {
  return {
    name: 'kraken',
    fetch: ({ kraken: pair }, dispatcher) => pair && ticker(url, pair, dispatcher),
  };
}

async function ticker(url: string, [asked, answered]: readonly [string, string], dispatcher: Dispatcher) {
  const { result } = (await get(`${url}/0/public/Ticker?pair=${asked}`, dispatcher)) as {
    result?: Readonly<Record<string, { c?: string[] }>>;
  };
  return positive(result?.[answered]?.c?.[0]);
}

/** `GET /v2/prices/BTC-USD/spot`: `data.amount`. */
export function coinbase(url: string): Source {
  return {
    name: 'coinbase',
    fetch: ({ coinbase: pair }, dispatcher) => (pair === undefined ? undefined : spot(url, pair, dispatcher)),
  };
}

async function spot(url: string, pair: string, dispatcher: Dispatcher): Promise<string> {
  const { data } = (await get(`${url}/v2/prices/${pair}/spot`, dispatcher)) as { data?: { amount?: string } };
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
  private readonly agreed = new Map<string, Quote>();
  private readonly doubted = new Set<string>();
  private readonly dispatcher = new Agent();

  /** @param alarm called for each source that fails, also while another one answers */
  constructor(
    private readonly market: { readonly sources: readonly Source[]; readonly coins: readonly CoinTerms[] },
    private readonly clock: Clock,
    private readonly limits: RateLimits,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async usdPer(wanted: string): Promise<Rate> {
    const terms = this.terms(wanted);
    const { code: coin, rates, fixedRate } = terms.ratedAs === undefined ? terms : this.terms(terms.ratedAs);
    if (fixedRate !== undefined) return { value: fixedRate, source: 'fixed', at: this.clock.now() };
    await Promise.all(this.market.sources.map((source) => this.refresh(source, coin, rates ?? {})));
    const known = this.market.sources.flatMap(({ name }) => {
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

  private terms(code: string): CoinTerms {
    const coin = this.market.coins.find((each) => each.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  /** Why a rate is not believed; undefined when it is. */
  private doubtOf(coin: string, rate: Quote, others: readonly Quote[]): string | undefined {
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
  private async refresh(source: Source, coin: string, names: RateNames): Promise<void> {
    const name = `${source.name} ${coin}`;
    const known = this.quotes.get(name);
    const now = this.clock.milliseconds();
    const failedAt = this.failedAt.get(name);
    if (failedAt !== undefined ? now - failedAt < RETRY_MS : known && this.age(known) < this.keptMs(coin)) return;
    try {
      const value = await source.fetch(names, this.dispatcher);
      this.failedAt.delete(name);
      if (value !== undefined) this.quotes.set(name, { value, at: now });
    } catch (error) {
      this.failedAt.set(name, now);
      this.alarm(`the exchange rates of ${source.name} cannot be had`, error);
    }
  }

  private keptMs(coin: string): number {
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
