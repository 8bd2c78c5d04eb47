import { Agent } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamError } from '#application';
import {
  type AcceptedRate,
  addToHistory,
  type CoinTerms,
  type ConsensusRate,
  type RateLimits,
  type RateNames,
  type RateQuote,
  type RateRejection,
  selectRate,
} from '#domain';
import { formatUsd } from '#kernel';
import type { RateSource } from './rate-sources.ts';

/** A source that fails is asked again after this long, and each time after twice as long, up to a minute. */
const RETRY_MS = 3_000;
const MAX_RETRY_MS = 60_000;
const MAX_ANSWER_BYTES = 65_536;
/** A whole answer takes no longer, and nor does whoever waits for it. */
const TIMEOUT_MS = 3_000;
/** What is agreed on is noted no more often. */
const NOTED_MS = 30_000;

export interface Market {
  readonly sources: readonly RateSource[];
  readonly coins: readonly CoinTerms[];
}

export interface ConsensusSettings extends RateLimits {
  /** Coins for which one source alone is believed, near to what was agreed on before. */
  readonly loneSourceCoins: readonly string[];
}

/** What is known of a source, of one coin. */
interface Known {
  readonly quote: RateQuote | undefined;
  readonly failures: number;
  readonly askAgainAt: number;
  /** While it is being asked. Whoever wants to know waits for the same answer. */
  readonly asking?: Promise<void>;
}

const UNKNOWN: Known = { quote: undefined, failures: 0, askAgainAt: 0 };

const WHY: Readonly<Record<RateRejection, string>> = {
  silence: 'no source of exchange rates answers',
  alone: 'only one source of exchange rates answers',
  contradiction: 'the sources of exchange rates contradict each other',
  jump: 'it has jumped',
};

/**
 * Rates that several sources agree on. Sources are asked when a rate is wanted and what they said last is old, and their
 * answers are shared; what was agreed on is remembered as long as this process runs, and by it alone.
 */
export class MarketRates extends ExchangeRates {
  /** By source and coin. */
  private readonly known = new Map<string, Known>();
  /** By coin. */
  private readonly agreed = new Map<string, readonly ConsensusRate[]>();
  /** What was raised by topic, until it is over. */
  private readonly alarmed = new Map<string, string>();
  private readonly dispatcher = new Agent({ maxResponseSize: MAX_ANSWER_BYTES, connect: { timeout: TIMEOUT_MS } });

  /** @param alarm called once for each cause: a source that fails, is stale or contradicts others, a rate that is not believed */
  constructor(
    private readonly market: Market,
    private readonly clock: Clock,
    private readonly settings: ConsensusSettings,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async fetchUsdRate(wanted: string): Promise<Rate> {
    const terms = this.terms(wanted);
    const { code: coin, rates = {}, fixedRate } = terms.ratedAs === undefined ? terms : this.terms(terms.ratedAs);
    if (fixedRate !== undefined) return { value: fixedRate, source: 'fixed', at: this.clock.now() };
    const sources = this.market.sources.filter((source) => source.quotes(rates));
    await Promise.all(sources.map((source) => this.refresh(source, coin, rates)));
    return this.believed(coin, sources);
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  private terms(code: string): CoinTerms {
    const coin = this.market.coins.find((each) => each.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  private believed(coin: string, sources: readonly RateSource[]): Rate {
    const now = this.clock.nowMs();
    const quotes = sources.flatMap((source) => this.fresh(source, coin, now) ?? []);
    const agreed = this.agreed.get(coin) ?? [];
    const mayBeAlone = this.settings.loneSourceCoins.includes(coin);
    const belief = selectRate({ quotes, history: agreed, allowsSingleSource: mayBeAlone, now }, this.settings);
    if (typeof belief === 'string') return this.refuse(coin, belief, quotes, sources);
    this.over(coin);
    this.noteOutliers(coin, belief, quotes);
    if (belief.quotes.length > 1 && now - (agreed.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= NOTED_MS)
      this.agreed.set(coin, addToHistory(agreed, belief.price, now));
    return {
      value: formatUsd(belief.price),
      source: belief.quotes.map(({ source }) => source).join(', '),
      at: new Date(Math.min(...belief.quotes.map(({ at }) => at))).toISOString(),
    };
  }

  /** What a source said last, unless that is too old to count. */
  private fresh({ name, freshMs }: RateSource, coin: string, now: number): RateQuote | undefined {
    const { quote, failures } = this.known.get(`${name} ${coin}`) ?? UNKNOWN;
    // A clock that was set back does not make it young.
    if (quote && Math.abs(now - quote.at) < freshMs) {
      if (failures === 0) this.over(`${name} ${coin}`);
      return quote;
    }
    if (quote && failures === 0) {
      const since = new Date(quote.at).toISOString();
      this.raise(`${name} ${coin}`, 'stale', `the rate of ${coin} at ${name} is of ${since}: it does not count`);
    }
    return undefined;
  }

  private refuse(
    coin: string,
    doubt: RateRejection,
    quotes: readonly RateQuote[],
    sources: readonly RateSource[],
  ): never {
    const known = this.agreed.get(coin)?.at(-1);
    const before = known ? `; agreed on before: ${formatUsd(known.price)}` : '; nothing is known from before';
    this.raise(coin, doubt, `no rate of ${coin} is believed, ${WHY[doubt]}: ${printed(quotes) || 'nothing'}${before}`);
    const next = Math.min(...sources.map(({ name }) => this.known.get(`${name} ${coin}`)?.askAgainAt ?? 0));
    const waitMs = Math.min(Math.max(next - this.clock.nowMs(), 1_000), MAX_RETRY_MS);
    const message = `No exchange rate can be believed at the moment: ${WHY[doubt]}`;
    throw new UpstreamError('upstream_unavailable', message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
  }

  private noteOutliers(coin: string, { price, quotes: used }: AcceptedRate, quotes: readonly RateQuote[]): void {
    for (const quote of quotes) {
      const topic = `outlier ${quote.source} ${coin}`;
      if (used.includes(quote)) this.over(topic);
      else {
        const others = `the others agree on ${formatUsd(price)}`;
        this.raise(topic, 'outlier', `${printed([quote])} for ${coin}, and is not believed: ${others}`);
      }
    }
  }

  private async refresh(source: RateSource, coin: string, names: RateNames): Promise<void> {
    const key = `${source.name} ${coin}`;
    const known = this.known.get(key) ?? UNKNOWN;
    if (known.asking) return known.asking;
    const now = this.clock.nowMs();
    const waitMs = known.askAgainAt - now;
    if (waitMs > 0 && waitMs <= MAX_RETRY_MS) return;
    const asking = source
      .price(names, { now, timeoutMs: TIMEOUT_MS, dispatcher: this.dispatcher })
      .then((priced) => {
        const quote = { source: source.name, ...priced };
        this.known.set(key, { quote, failures: 0, askAgainAt: now + source.keptMs });
      })
      .catch((error) => {
        const { quote, failures } = known;
        const askAgainAt = now + Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);
        this.known.set(key, { quote, failures: failures + 1, askAgainAt });
        this.raise(key, 'failing', `the rate of ${coin} cannot be had from ${source.name}`, error);
      });
    this.known.set(key, { ...known, asking });
    return asking;
  }

  /** What goes on is one alarm, however many ask. */
  private raise(topic: string, cause: string, problem: string, error?: unknown): void {
    if (this.alarmed.get(topic) === cause) return;
    this.alarmed.set(topic, cause);
    this.alarm(problem, error);
  }

  private over(topic: string): void {
    this.alarmed.delete(topic);
  }
}

/** `kraken says 100000, coinbase says 150000` */
function printed(quotes: readonly RateQuote[]): string {
  return quotes.map(({ source, price }) => `${source} says ${formatUsd(price)}`).join(', ');
}
