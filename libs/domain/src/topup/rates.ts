/**
 * Which exchange rate is believed, of what several sources say: none says by itself what a coin is worth. Pure, so that it
 * can be tried with any liar.
 */
import { money, type PicoUsd } from '#kernel';

/** What a source says that one coin costs. */
export interface RateQuote {
  readonly source: string;
  readonly price: PicoUsd;
  /** When it was so, in milliseconds since 1970. */
  readonly at: number;
}

/** What several sources agreed on once. */
export interface ConsensusRate {
  readonly price: PicoUsd;
  readonly at: number;
}

export interface RateLimits {
  /** By how many hundredths sources may differ from each other. */
  readonly maxSpreadPercent: number;
  /** By how many hundredths a rate may differ at once from what was agreed on before; by as much again after each `JUMP_WINDOW_MS`. */
  readonly maxJumpPercent: number;
}

/** What is known of a coin when its rate is wanted. */
export interface RateContext {
  /** One from each source, none of them stale. */
  readonly quotes: readonly RateQuote[];
  /** What was agreed on in this process, the latest last. */
  readonly history: readonly ConsensusRate[];
  /** Whether one source alone may be believed. */
  readonly allowsSingleSource: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface AcceptedRate {
  readonly price: PicoUsd;
  /** Those that it was made of: more than one, unless one alone may be believed. */
  readonly quotes: readonly RateQuote[];
}

/** Why no rate is believed. */
export type RateRejection = 'no_quotes' | 'single_source' | 'contradiction' | 'jump';

/** A rate that has truly moved is believed again without anybody's help: what it may differ by grows. */
const JUMP_WINDOW_MS = 600_000;
/** Nothing moves further than it may within this time in small steps either. */
const HISTORY_MS = 3_600_000;

/**
 * The median of the sources that agree, if two do and it has not jumped. One alone is believed where it may be, near to
 * what was agreed on before.
 */
export function selectRate(context: RateContext, limits: RateLimits): AcceptedRate | RateRejection {
  const { quotes, history, allowsSingleSource, now } = context;
  const [first] = quotes;
  if (!first) return 'no_quotes';
  if (quotes.length === 1) {
    const last = history.at(-1);
    if (!allowsSingleSource || !last) return 'single_source';
    // However long ago that was: nobody confirms that it has moved on.
    return isFar(first.price, last.price, limits.maxJumpPercent, 0) ? 'jump' : { price: first.price, quotes };
  }
  const agreeing = selectAgreeing(quotes, limits.maxSpreadPercent);
  if (agreeing.length < 2) return 'contradiction';
  const price = calculateMedian(agreeing);
  const jumped = history.some((rate) => isFar(price, rate.price, limits.maxJumpPercent, now - rate.at));
  return jumped ? 'jump' : { price, quotes: agreeing };
}

/** What was agreed on, with one more: as much of it as counts later. */
export function addToHistory(history: readonly ConsensusRate[], price: PicoUsd, now: number): readonly ConsensusRate[] {
  return [...history.filter(({ at }) => now - at < HISTORY_MS), { price, at: now }];
}

/** Those that are near to the one in the middle, or to both. */
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

/** Whether the higher is above the lower by more than so many hundredths, which grow with time. */
function isFar(a: PicoUsd, b: PicoUsd, percent: number, elapsedMs: number): boolean {
  const [low, high] = a < b ? [a, b] : [b, a];
  const scaledPercent = BigInt(percent) * BigInt(JUMP_WINDOW_MS + Math.max(0, elapsedMs));
  return (high - low) * 100n * BigInt(JUMP_WINDOW_MS) > low * scaledPercent;
}
