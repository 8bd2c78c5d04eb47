/**
 * Selects an exchange rate from the quotes of several sources. No single source determines the value of a coin, unless
 * that is allowed for the coin. The functions are pure, so tests can run them with any manipulated quote.
 */
import { money, type PicoUsd } from '#kernel';

/** The price of one coin at one source. */
export interface RateQuote {
  readonly source: string;
  readonly price: PicoUsd;
  /** Time of the price, in milliseconds since 1970. */
  readonly at: number;
  /** Minimum time between two fetches from the source. */
  readonly intervalMs: number;
}

/** A price on which several sources agreed at some time. */
export interface ConsensusRate {
  readonly price: PicoUsd;
  readonly at: number;
}

export interface RateLimits {
  /** Maximum difference between sources, in percent. */
  readonly maxSpreadPercent: number;
  /** Maximum difference from an earlier consensus, in percent. Doubled after one `JUMP_WINDOW_MS`, tripled after 2. */
  readonly maxJumpPercent: number;
}

/** The input for selecting the rate of one coin. */
export interface RateContext {
  /** At most one quote of each source, none of them stale. */
  readonly quotes: readonly RateQuote[];
  /** Earlier consensus rates, oldest first. */
  readonly history: readonly ConsensusRate[];
  /** Whether a single source is sufficient. */
  readonly allowsSingleSource: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface AcceptedRate {
  readonly price: PicoUsd;
  /** The quotes that agree: more than one, unless a single source is allowed. */
  readonly quotes: readonly RateQuote[];
  /** Whether the rate must not be used now, because it moves faster than its sources can be fetched. */
  readonly isMoving: boolean;
}

/** Why no rate is accepted. */
export type RateRejection = 'no_quotes' | 'single_source' | 'contradiction' | 'jump';

/** A quote is timely for this time, if its source can be fetched that often. */
export const TIMELY_MS = 10_000;
/** A rate without enough timely quotes must not have changed by more than this in `JUMP_WINDOW_MS`, in percent. */
const MAX_MOVE_PERCENT = 5;
/**
 * A consensus is added to the history after this time, or earlier if it differs by more than `HISTORY_STEP_PERCENT`.
 */
const HISTORY_INTERVAL_MS = 30_000;
const HISTORY_STEP_PERCENT = 1;
/** The allowed difference grows with time, so that a real change of the rate is accepted without an operator. */
const JUMP_WINDOW_MS = 600_000;
/**
 * A rate is compared with the newest consensus and each one of this period before it, so that small steps are limited
 * too.
 */
const HISTORY_MS = 3_600_000;

/**
 * Returns the median of the sources that agree, if at least two agree and the rate has not jumped. If there is only one
 * quote and a single source is allowed, the quote is accepted near the last consensus.
 * @returns the reason if no rate is accepted
 */
export function selectRate(context: RateContext, limits: RateLimits): AcceptedRate | RateRejection {
  const { quotes, history, allowsSingleSource, now } = context;
  const [first] = quotes;
  if (!first) return 'no_quotes';
  if (quotes.length === 1) {
    const last = history.at(-1);
    if (!allowsSingleSource || !last) return 'single_source';
    // The allowed difference does not grow with time here, because no second source confirms the change.
    return isFar(first.price, last.price, limits.maxJumpPercent, 0) ? 'jump' : accept(first.price, quotes, context);
  }
  const agreeing = selectAgreeing(quotes, limits.maxSpreadPercent);
  if (agreeing.length < 2) return 'contradiction';
  const price = calculateMedian(agreeing);
  const jumped = history.some((rate) => isFar(price, rate.price, limits.maxJumpPercent, now - rate.at));
  return jumped ? 'jump' : accept(price, agreeing, context);
}

/**
 * Returns the history with a new consensus rate, without rates that are too old to matter. Returns `history` itself if
 * its newest rate is recent and near the new one.
 */
export function addToHistory(history: readonly ConsensusRate[], price: PicoUsd, now: number): readonly ConsensusRate[] {
  const last = history.at(-1);
  const isRecent = last && Math.abs(now - last.at) < HISTORY_INTERVAL_MS;
  if (isRecent && !isFar(price, last.price, HISTORY_STEP_PERCENT, 0)) return history;
  return [...history.filter(({ at }) => now - at < HISTORY_MS), { price, at: now }];
}

/**
 * Returns the time since which the rate can have been out of date: of a majority of the quotes, each is at least as
 * new. Their median cannot be lower or higher than every quote of this majority.
 */
export function getRateTime(quotes: readonly RateQuote[]): number {
  return quotes.map(({ at }) => at).toSorted((a, b) => b - a)[Math.floor(quotes.length / 2)] as number;
}

function accept(price: PicoUsd, quotes: readonly RateQuote[], { history, now }: RateContext): AcceptedRate {
  const isTimely = ({ at, intervalMs }: RateQuote) => intervalMs <= TIMELY_MS && Math.abs(now - at) < TIMELY_MS;
  const hasTimelyMajority = quotes.filter(isTimely).length * 2 > quotes.length;
  return { price, quotes, isMoving: !hasTimelyMajority && hasMoved(price, history, now) };
}

/**
 * Whether any two rates of the last `JUMP_WINDOW_MS`, including the new one, differ by more than `MAX_MOVE_PERCENT`.
 */
function hasMoved(price: PicoUsd, history: readonly ConsensusRate[], now: number): boolean {
  const recent = history.filter(({ at }) => now - at < JUMP_WINDOW_MS).map((rate) => rate.price);
  const sorted = [price, ...recent].toSorted((a, b) => (a < b ? -1 : 1));
  return isFar(sorted[0] as PicoUsd, sorted.at(-1) as PicoUsd, MAX_MOVE_PERCENT, 0);
}

/** Returns the quotes near the middle one, or near both middle ones of an even number. */
function selectAgreeing(quotes: readonly RateQuote[], percent: number): readonly RateQuote[] {
  const middle = selectMiddle(quotes);
  return quotes.filter(({ price }) => middle.every((quote) => !isFar(price, quote.price, percent, 0)));
}

function calculateMedian(quotes: readonly RateQuote[]): PicoUsd {
  const middle = selectMiddle(quotes);
  return (money.sum(middle.map(({ price }) => price)) / BigInt(middle.length)) as PicoUsd;
}

function selectMiddle(quotes: readonly RateQuote[]): readonly RateQuote[] {
  const sorted = quotes.toSorted((a, b) => (a.price < b.price ? -1 : 1));
  const half = sorted.length / 2;
  return sorted.slice(Math.ceil(half) - 1, Math.floor(half) + 1);
}

/** Whether the higher price exceeds the lower one by more than `percent`, which grows with `elapsedMs`. */
function isFar(a: PicoUsd, b: PicoUsd, percent: number, elapsedMs: number): boolean {
  const [low, high] = a < b ? [a, b] : [b, a];
  const scaledPercent = BigInt(percent) * BigInt(JUMP_WINDOW_MS + Math.max(0, elapsedMs));
  return (high - low) * 100n * BigInt(JUMP_WINDOW_MS) > low * scaledPercent;
}
