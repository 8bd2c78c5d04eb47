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

/** Minimum delay until a failed source is called again. It doubles with each failure, up to `MAX_RETRY_MS`. */
const MIN_RETRY_MS = 3_000;
const MAX_RETRY_MS = 60_000;
const MAX_RESPONSE_BYTES = 65_536;
/** Maximum time for a complete response of a source. */
const TIMEOUT_MS = 3_000;
/** Minimum time between two consensus rates in the history. */
const HISTORY_INTERVAL_MS = 30_000;

export interface Market {
  readonly sources: readonly RateSource[];
  readonly coins: readonly CoinTerms[];
}

export interface ConsensusSettings extends RateLimits {
  /** Coins for which a single source is sufficient if its rate is near the last consensus. */
  readonly loneSourceCoins: readonly string[];
}

/** The state of one coin at one source. */
interface SourceState {
  readonly quote: RateQuote | undefined;
  readonly failures: number;
  readonly nextRequestAt: number;
  /** The request in progress, for which all callers wait. */
  readonly pending?: Promise<void>;
}

const UNKNOWN_STATE: SourceState = { quote: undefined, failures: 0, nextRequestAt: 0 };

const REASONS: Readonly<Record<RateRejection, string>> = {
  no_quotes: 'no source has a current rate',
  single_source: 'only one source has a current rate',
  contradiction: 'the sources of exchange rates contradict each other',
  jump: 'the rate has jumped',
};

/**
 * Exchange rates on which several sources agree; for `loneSourceCoins`, a single source can be sufficient. A source is
 * called when a rate is needed and its last quote is too old; concurrent callers share the call. The history of
 * consensus rates exists only in this process.
 */
export class MarketRates extends ExchangeRates {
  /** By source and coin. */
  private readonly sourceStates = new Map<string, SourceState>();
  /** By coin. */
  private readonly rateHistory = new Map<string, readonly ConsensusRate[]>();
  /** Reported problems by topic, until they are resolved. */
  private readonly reportedCauses = new Map<string, string>();
  private readonly dispatcher = new Agent({ maxResponseSize: MAX_RESPONSE_BYTES, connect: { timeout: TIMEOUT_MS } });

  /**
   * @param reportError called once for each problem until its cause changes or it is resolved. Problems are failing,
   * outdated and contradicting sources, and rejected rates.
   */
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

  /** Returns the last quote of a source; undefined if there is none or it is too old. */
  private findRecentQuote({ name, freshMs }: RateSource, coin: string, now: number): RateQuote | undefined {
    const { quote, failures } = this.sourceStates.get(`${name} ${coin}`) ?? UNKNOWN_STATE;
    // The absolute difference, because a clock that was set back must not make a quote recent.
    if (quote && Math.abs(now - quote.at) < freshMs) {
      if (failures === 0) this.markResolved(`${name} ${coin}`);
      return quote;
    }
    if (quote && failures === 0) {
      const since = new Date(quote.at).toISOString();
      this.reportOnce(`${name} ${coin}`, 'stale', `the rate of ${coin} at ${name} is outdated: its time is ${since}`);
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
    const before = lastRate ? `; last consensus: ${formatUsd(lastRate.price)}` : '; there is no earlier consensus';
    this.reportOnce(
      coin,
      rejection,
      `no rate of ${coin} is accepted, ${REASONS[rejection]}: ${formatQuotes(quotes) || 'no quotes'}${before}`,
    );
    const next = Math.min(...sources.map(({ name }) => this.sourceStates.get(`${name} ${coin}`)?.nextRequestAt ?? 0));
    const waitMs = Math.min(Math.max(next - this.clock.nowMs(), 1_000), MAX_RETRY_MS);
    const message = `No exchange rate is available at the moment: ${REASONS[rejection]}`;
    throw new UpstreamError('upstream_unavailable', message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
  }

  private reportOutliers(coin: string, { price, quotes: used }: AcceptedRate, quotes: readonly RateQuote[]): void {
    for (const quote of quotes) {
      const topic = `outlier ${quote.source} ${coin}`;
      if (used.includes(quote)) this.markResolved(topic);
      else {
        const consensusText = `the others agree on ${formatUsd(price)}`;
        this.reportOnce(topic, 'outlier', `${formatQuotes([quote])} for ${coin}, which is ignored: ${consensusText}`);
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
        this.reportOnce(key, 'failing', `the rate of ${coin} is not available from ${source.name}`, error);
      });
    this.sourceStates.set(key, { ...state, pending });
    return pending;
  }

  /** Reports a problem once, until its cause changes or it is resolved. */
  private reportOnce(topic: string, cause: string, problem: string, error?: unknown): void {
    if (this.reportedCauses.get(topic) === cause) return;
    this.reportedCauses.set(topic, cause);
    this.reportError(problem, error);
  }

  private markResolved(topic: string): void {
    this.reportedCauses.delete(topic);
  }
}

/** Formats quotes, for example as `kraken reports 100000, coinbase reports 150000`. */
function formatQuotes(quotes: readonly RateQuote[]): string {
  return quotes.map(({ source, price }) => `${source} reports ${formatUsd(price)}`).join(', ');
}
