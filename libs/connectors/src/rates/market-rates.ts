import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import { type Clock, ExchangeRates, type Rate, UpstreamError } from '#application';
import {
  type AcceptedRate,
  addToHistory,
  type CoinTerms,
  getRateTime,
  type RateLimits,
  type RateNames,
  type RateQuote,
  type RateRejection,
  selectRate,
  TIMELY_MS,
} from '#domain';
import { formatUsd, withStoreTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import type { RateSource } from './rate-sources.ts';
import { type CoinState, type FetchClaim, MAX_RETRY_MS, type SharedRates } from './shared-rates.ts';

const MAX_RESPONSE_BYTES = 65_536;
/** Maximum time for a complete response of a source. */
const TIMEOUT_MS = 3_000;
/** After this time a caller uses the quotes that there are, without those that are still being fetched. */
const MAX_FETCH_WAIT_MS = 3_500;
/** Maximum time for which a caller waits for the database and the sources. */
const MAX_WAIT_MS = 5_000;
/** How often a process checks whether another process has fetched a quote. */
const POLL_INTERVAL_MS = 100;

export interface Market {
  readonly sources: readonly RateSource[];
  readonly coins: readonly CoinTerms[];
  readonly shared: SharedRates;
}

export interface ConsensusSettings extends RateLimits {
  /** Coins for which a single source is sufficient if its rate is near the last consensus. */
  readonly loneSourceCoins: readonly string[];
}

/** A coin with the sources that quote it. */
interface QuotedCoin {
  readonly code: string;
  readonly names: RateNames;
  readonly sources: readonly RateSource[];
}

const REASONS: Readonly<Record<RateRejection | 'moving', string>> = {
  no_quotes: 'no source has a current rate',
  single_source: 'only one source has a current rate',
  contradiction: 'the sources of exchange rates contradict each other',
  jump: 'the rate has jumped',
  moving: 'the rate moves too fast for its sources',
};

/**
 * Exchange rates on which several sources agree; for `loneSourceCoins`, a single source can be sufficient. A source is
 * called when a rate is needed and its last quote is too old. All processes share the quotes and the consensus rates.
 */
export class MarketRates extends ExchangeRates {
  /** The fetches of this process by coin, for which all its callers wait. */
  private readonly refreshes = new Map<string, Promise<void>>();
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

  /** @throws UpstreamError if no rate is accepted; StoreUnavailableError if the database does not respond in time */
  async fetchUsdRate(requestedCode: string): Promise<Rate> {
    const terms = this.getCoinTerms(requestedCode);
    const {
      code,
      rates: names = {},
      fixedRate,
    } = terms.ratedAs === undefined ? terms : this.getCoinTerms(terms.ratedAs);
    if (fixedRate !== undefined) return { value: fixedRate, source: 'fixed', at: this.clock.now() };
    const sources = this.market.sources.filter((source) => source.canQuote(names));
    const rate = this.fetchQuotedRate({ code, names, sources });
    return withStoreTimeout(nodeTimers, MAX_WAIT_MS, rate, {
      problem: 'the exchange rates were not available in time',
    });
  }

  close(): Promise<void> {
    return this.dispatcher.close();
  }

  private getCoinTerms(code: string): CoinTerms {
    const coin = this.market.coins.find((coinTerms) => coinTerms.code === code);
    if (!coin) throw new Error(`the coin ${code} is missing from payments.json`);
    return coin;
  }

  private async fetchQuotedRate(coin: QuotedCoin): Promise<Rate> {
    const deadline = performance.now() + MAX_FETCH_WAIT_MS;
    for (;;) {
      const state = await this.market.shared.read(
        coin.code,
        coin.sources.map(({ key }) => key),
      );
      const isDue = coin.sources.some(({ key }) => state.sources.get(key)?.isDue ?? true);
      if (isDue && performance.now() < deadline) await this.refresh(coin);
      else {
        const rate = await this.resolveRate(coin, state);
        if (rate) return rate;
      }
    }
  }

  /** @returns undefined if another process has changed the history, so that the rate must be compared with it again */
  private async resolveRate(coin: QuotedCoin, state: CoinState): Promise<Rate | undefined> {
    const { history, now } = state;
    const quotes = coin.sources.flatMap((source) => this.findRecentQuote(source, coin.code, state) ?? []);
    const allowsSingleSource = this.settings.loneSourceCoins.includes(coin.code);
    const selected = selectRate({ quotes, history, allowsSingleSource, now }, this.settings);
    if (typeof selected === 'string') return this.rejectRate(coin, selected, quotes, state);
    if (selected.quotes.length > 1) {
      const newHistory = addToHistory(history, selected.price, now);
      const isStored =
        newHistory === history || (await this.market.shared.replaceHistory(coin.code, state.version, newHistory));
      if (!isStored) return undefined;
    }
    if (selected.isMoving) return this.rejectRate(coin, 'moving', quotes, state);
    this.markResolved(coin.code);
    this.reportOutliers(coin.code, selected, quotes);
    return {
      value: formatUsd(selected.price),
      source: selected.quotes.map(({ source }) => source).join(', '),
      at: new Date(getRateTime(selected.quotes)).toISOString(),
    };
  }

  /** Returns the last quote of a source; undefined if there is none or it is too old. */
  private findRecentQuote(
    { name, key, intervalMs, freshMs }: RateSource,
    coin: string,
    { sources, now }: CoinState,
  ): RateQuote | undefined {
    const source = sources.get(key);
    if (source?.price === undefined) return undefined;
    const { price, quotedAt, fetchedAt, failures, isDue } = source;
    // A source that can be fetched in time must have been. The absolute difference, because a clock that was set back
    // must not make a quote recent.
    const isFetched = intervalMs > TIMELY_MS || Math.abs(now - fetchedAt) < TIMELY_MS;
    if (isFetched && Math.abs(now - quotedAt) < freshMs) {
      if (failures === 0) this.markResolved(`${name} ${coin}`);
      return { source: name, price, at: quotedAt, intervalMs };
    }
    if (failures === 0 && !isDue) {
      const since = new Date(quotedAt).toISOString();
      this.reportOnce(`${name} ${coin}`, 'stale', `the rate of ${coin} at ${name} is outdated: its time is ${since}`);
    }
    return undefined;
  }

  private rejectRate(
    { code, sources }: QuotedCoin,
    rejection: RateRejection | 'moving',
    quotes: readonly RateQuote[],
    state: CoinState,
  ): never {
    const lastRate = state.history.at(-1);
    const before = lastRate ? `; last consensus: ${formatUsd(lastRate.price)}` : '; there is no earlier consensus';
    this.reportOnce(
      code,
      rejection,
      `no rate of ${code} is accepted, ${REASONS[rejection]}: ${formatQuotes(quotes) || 'no quotes'}${before}`,
    );
    const next = Math.min(...sources.map(({ key }) => state.sources.get(key)?.nextFetchAt ?? 0));
    const waitMs = Math.min(Math.max(next - state.now, 1_000), MAX_RETRY_MS);
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

  /** Fetches the quotes that are due and that no other process is fetching. All callers of this process share it. */
  private refresh(coin: QuotedCoin): Promise<void> {
    const running = this.refreshes.get(coin.code);
    if (running) return running;
    const refresh = this.fetchDue(coin).finally(() => this.refreshes.delete(coin.code));
    this.refreshes.set(coin.code, refresh);
    return refresh;
  }

  private async fetchDue({ code, names, sources }: QuotedCoin): Promise<void> {
    const claims = await this.market.shared.claim(
      code,
      sources.map(({ key }) => key),
    );
    if (claims.length === 0) return delay(POLL_INTERVAL_MS);
    const sourceByKey = new Map(sources.map((source) => [source.key, source]));
    await Promise.all(
      claims.map((claim) => this.fetchQuote(claim, sourceByKey.get(claim.source) as RateSource, names)),
    );
  }

  private async fetchQuote(claim: FetchClaim, source: RateSource, names: RateNames): Promise<void> {
    const options = { now: claim.claimedAt, timeoutMs: TIMEOUT_MS, dispatcher: this.dispatcher };
    const priced = await source.fetchPrice(names, options).catch((error) => {
      const problem = `the rate of ${claim.coin} is not available from ${source.name}`;
      this.reportOnce(`${source.name} ${claim.coin}`, 'failing', problem, error);
    });
    if (priced) await this.market.shared.complete(claim, priced, source.intervalMs);
    else await this.market.shared.fail(claim);
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
