import { Agent, type Dispatcher, request } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamFailure } from '#application';

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
  fetch(dispatcher: Dispatcher): Promise<string>;
}

interface Quote {
  readonly rate: string;
  readonly at: number;
}

/** `GET /0/public/Ticker?pair=XBTUSD`: `result.XXBTZUSD.c[0]` is the last trade. */
export function kraken(url: string): Source {
  return {
    name: 'kraken',
    fetch: async (dispatcher) => {
      const { result } = (await get(`${url}/0/public/Ticker?pair=XBTUSD`, dispatcher)) as {
        result?: { XXBTZUSD?: { c?: string[] } };
      };
      return positive(result?.XXBTZUSD?.c?.[0]);
    },
  };
}

/** `GET /v2/prices/BTC-USD/spot`: `data.amount`. */
export function coinbase(url: string): Source {
  return {
    name: 'coinbase',
    fetch: async (dispatcher) => {
      const { data } = (await get(`${url}/v2/prices/BTC-USD/spot`, dispatcher)) as { data?: { amount?: string } };
      return positive(data?.amount);
    },
  };
}

/** The rate of the first source that has a fresh one, as long as no other fresh source contradicts it. */
export class MarketRates extends ExchangeRates {
  private readonly quotes = new Map<string, Quote>();
  private readonly failedAt = new Map<string, number>();
  private readonly dispatcher = new Agent();

  /** @param alarm told of each source that fails, also while another one answers */
  constructor(
    private readonly sources: readonly Source[],
    private readonly clock: Clock,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async usdPerBitcoin(): Promise<Rate> {
    await Promise.all(this.sources.map((source) => this.refresh(source)));
    const fresh = this.sources.flatMap(({ name }) => {
      const quote = this.quotes.get(name);
      return quote && this.age(quote) < STALE_MS ? [{ rate: quote.rate, source: name }] : [];
    });
    const [first, ...others] = fresh;
    if (!first) throw new UpstreamFailure('upstream_unavailable', 'No exchange rate is available at the moment');
    for (const other of others) {
      const difference = Math.abs(Number(other.rate) / Number(first.rate) - 1) * 100;
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
  private async refresh(source: Source): Promise<void> {
    const known = this.quotes.get(source.name);
    const now = this.clock.milliseconds();
    if (known && this.age(known) < REFRESH_MS) return;
    if (now - (this.failedAt.get(source.name) ?? 0) < RETRY_MS) return;
    try {
      this.quotes.set(source.name, { rate: await source.fetch(this.dispatcher), at: now });
    } catch (error) {
      this.failedAt.set(source.name, now);
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
