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
const MIN_RETRY_MS = 3_000;
const MAX_RETRY_MS = 60_000;
const MAX_RESPONSE_BYTES = 65_536;
/** A whole answer takes no longer, and nor does whoever waits for it. */
const TIMEOUT_MS = 3_000;
/** What is agreed on is noted no more often. */
const HISTORY_INTERVAL_MS = 30_000;

export interface Market {
  readonly sources: readonly RateSource[];
  readonly coins: readonly CoinTerms[];
}

export interface ConsensusSettings extends RateLimits {
  /** Coins for which one source alone is believed, near to what was agreed on before. */
  readonly loneSourceCoins: readonly string[];
}

/** What is known of a source, of one coin. */
interface SourceState {
  readonly quote: RateQuote | undefined;
  readonly failures: number;
  readonly nextRequestAt: number;
  /** While it is being asked. Whoever wants to know waits for the same answer. */
  readonly pending?: Promise<void>;
}

const UNKNOWN_STATE: SourceState = { quote: undefined, failures: 0, nextRequestAt: 0 };

const REASONS: Readonly<Record<RateRejection, string>> = {
  no_quotes: 'no source of exchange rates answers',
  single_source: 'only one source of exchange rates answers',
  contradiction: 'the sources of exchange rates contradict each other',
  jump: 'it has jumped',
};

/**
 * Rates that several sources agree on. Sources are asked when a rate is wanted and what they said last is old, and their
 * answers are shared; what was agreed on is remembered as long as this process runs, and by it alone.
 */
export class MarketRates extends ExchangeRates {
  /** By source and coin. */
  private readonly sourceStates = new Map<string, SourceState>();
  /** By coin. */
  private readonly rateHistory = new Map<string, readonly ConsensusRate[]>();
  /** What was raised by topic, until it is over. */
  private readonly reportedCauses = new Map<string, string>();
  private readonly dispatcher = new Agent({ maxResponseSize: MAX_RESPONSE_BYTES, connect: { timeout: TIMEOUT_MS } });

  /** @param reportError called once for each cause: a source that fails, is stale or contradicts others, a rate that is not believed */
  constructor(
    private readonly market: Market,
    private readonly clock: Clock,
    private readonly settings: ConsensusSettings,
    private readonly reportError: (problem: string, error: unknown) => void,
  ) {
    super();
  }

  async fetchUsdRate(requestedCode: string): Promise<Rate> {
    const terms = this.getCoinTerms(requestedCode);
    const {
      code: coin,
      rates = {},
      fixedRate,
    } = terms.ratedAs === undefined ? terms : this.getCoinTerms(terms.ratedAs);
    if (fixedRate !== undefined) return { value: fixedRate, source: 'fixed', at: this.clock.now() };
    const sources = this.market.sources.filter((source) => source.canQuote(rates));
    await Promise.all(sources.map((source) => this.refresh(source, coin, rates)));
    return this.resolveRate(coin, sources);
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  private getCoinTerms(code: string): CoinTerms {
    const coin = this.market.coins.find((coinTerms) => coinTerms.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  private resolveRate(coin: string, sources: readonly RateSource[]): Rate {
    const now = this.clock.nowMs();
    const quotes = sources.flatMap((source) => this.findRecentQuote(source, coin, now) ?? []);
    const history = this.rateHistory.get(coin) ?? [];
    const allowsSingleSource = this.settings.loneSourceCoins.includes(coin);
    const selected = selectRate({ quotes, history, allowsSingleSource, now }, this.settings);
    if (typeof selected === 'string') return this.rejectRate(coin, selected, quotes, sources);
    this.markResolved(coin);
    this.reportOutliers(coin, selected, quotes);
    if (selected.quotes.length > 1 && now - (history.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= HISTORY_INTERVAL_MS)
      this.rateHistory.set(coin, addToHistory(history, selected.price, now));
    return {
      value: formatUsd(selected.price),
      source: selected.quotes.map(({ source }) => source).join(', '),
      at: new Date(Math.min(...selected.quotes.map(({ at }) => at))).toISOString(),
    };
  }

  /** What a source said last, unless that is too old to count. */
  private findRecentQuote({ name, freshMs }: RateSource, coin: string, now: number): RateQuote | undefined {
    const { quote, failures } = this.sourceStates.get(`${name} ${coin}`) ?? UNKNOWN_STATE;
    // A clock that was set back does not make it young.
    if (quote && Math.abs(now - quote.at) < freshMs) {
      if (failures === 0) this.markResolved(`${name} ${coin}`);
      return quote;
    }
    if (quote && failures === 0) {
      const since = new Date(quote.at).toISOString();
      this.reportOnce(`${name} ${coin}`, 'stale', `the rate of ${coin} at ${name} is of ${since}: it does not count`);
    }
    return undefined;
  }

  private rejectRate(
    coin: string,
    rejection: RateRejection,
    quotes: readonly RateQuote[],
    sources: readonly RateSource[],
  ): never {
    const lastRate = this.rateHistory.get(coin)?.at(-1);
    const before = lastRate ? `; agreed on before: ${formatUsd(lastRate.price)}` : '; nothing is known from before';
    this.reportOnce(
      coin,
      rejection,
      `no rate of ${coin} is believed, ${REASONS[rejection]}: ${formatQuotes(quotes) || 'nothing'}${before}`,
    );
    const next = Math.min(...sources.map(({ name }) => this.sourceStates.get(`${name} ${coin}`)?.nextRequestAt ?? 0));
    const waitMs = Math.min(Math.max(next - this.clock.nowMs(), 1_000), MAX_RETRY_MS);
    const message = `No exchange rate can be believed at the moment: ${REASONS[rejection]}`;
    throw new UpstreamError('upstream_unavailable', message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
  }

  private reportOutliers(coin: string, { price, quotes: used }: AcceptedRate, quotes: readonly RateQuote[]): void {
    for (const quote of quotes) {
      const topic = `outlier ${quote.source} ${coin}`;
      if (used.includes(quote)) this.markResolved(topic);
      else {
        const consensusText = `the others agree on ${formatUsd(price)}`;
        this.reportOnce(
          topic,
          'outlier',
          `${formatQuotes([quote])} for ${coin}, and is not believed: ${consensusText}`,
        );
      }
    }
  }

  private async refresh(source: RateSource, coin: string, names: RateNames): Promise<void> {
    const key = `${source.name} ${coin}`;
    const state = this.sourceStates.get(key) ?? UNKNOWN_STATE;
    if (state.pending) return state.pending;
    const now = this.clock.nowMs();
    const waitMs = state.nextRequestAt - now;
    if (waitMs > 0 && waitMs <= MAX_RETRY_MS) return;
    const pending = source
      .fetchPrice(names, { now, timeoutMs: TIMEOUT_MS, dispatcher: this.dispatcher })
      .then((priced) => {
        const quote = { source: source.name, ...priced };
        this.sourceStates.set(key, { quote, failures: 0, nextRequestAt: now + source.cacheMs });
      })
      .catch((error) => {
        const { quote, failures } = state;
        const nextRequestAt = now + Math.min(MIN_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
        this.sourceStates.set(key, { quote, failures: failures + 1, nextRequestAt });
        this.reportOnce(key, 'failing', `the rate of ${coin} cannot be had from ${source.name}`, error);
      });
    this.sourceStates.set(key, { ...state, pending });
    return pending;
  }

  /** What goes on is one alarm, however many ask. */
  private reportOnce(topic: string, cause: string, problem: string, error?: unknown): void {
    if (this.reportedCauses.get(topic) === cause) return;
    this.reportedCauses.set(topic, cause);
    this.reportError(problem, error);
  }

  private markResolved(topic: string): void {
    this.reportedCauses.delete(topic);
  }
}

/** `kraken says 100000, coinbase says 150000` */
function formatQuotes(quotes: readonly RateQuote[]): string {
  return quotes.map(({ source, price }) => `${source} says ${formatUsd(price)}`).join(', ');
}
