/** Compares the outcomes of waves with the rules, and states means and, in brackets, the worst values over all seeds. */
import { mean, sum } from './random.ts';
import type { WaveOutcome } from './run-waves.ts';

/** X: what the providers may bill beyond the balance. The larger amount counts. */
const MIN_EXCESS_USD = 0.02;
const EXCESS_SHARE = 0.03;
/** What the ledger may differ by from the bill for calls whose usage the provider reported. */
const MAX_DIFFERENCE = 0.01;
/** What estimates may differ by from the bill, for calls that were stopped. */
const MAX_ESTIMATE_DIFFERENCE = 0.25;
/** Beyond this, the host was too slow for the speed of the providers. */
const MAX_SLOWNESS = 1.25;

export interface HoldFinding {
  readonly holds: boolean;
  readonly line: string;
}

export function countEnds({ requests }: WaveOutcome, end: string): number {
  return requests.filter((request) => request.end === end).length;
}

/** Returns the share of what was spent that paid for responses that were truncated. */
export function calculateTruncatedShare({ requests, chargedUsd }: WaveOutcome): number {
  const spent = sum([...chargedUsd.values()]);
  const truncated = requests
    .filter(({ end }) => end === 'truncated')
    .map(({ requestId = '' }) => chargedUsd.get(requestId) ?? 0);
  return spent === 0 ? 0 : sum(truncated) / spent;
}

/** Returns the bill as a share of the most that the rule permits. */
function calculateBillShare({ billedUsd, fundsUsd }: WaveOutcome): number {
  return billedUsd / (fundsUsd + Math.max(MIN_EXCESS_USD, EXCESS_SHARE * fundsUsd));
}

/**
 * Nothing is lost: all requests have ended in time, with a complete response, a truncated one, a 402, or as `permitted`
 * states; nothing is held; no balance is negative.
 */
export function evaluateConsistency(outcomes: readonly WaveOutcome[], permitted: readonly string[] = []): HoldFinding {
  const expected = new Set(['complete', 'truncated', '402', ...permitted]);
  const otherRequests = outcomes.flatMap(({ requests }) => requests.filter(({ end }) => !expected.has(end)));
  const ends = [...Map.groupBy(otherRequests, ({ end }) => end)].map(([end, { length }]) => `${length} ${end}`);
  const held = outcomes.filter(({ heldUsd }) => heldUsd !== 0).length;
  const negative = outcomes.filter(({ balanceUsd }) => balanceUsd < 0).length;
  const line = `nothing is lost: ${ends.join(', ') || 'no'} other ends, ${held} waves still hold, ${negative} balances are negative`;
  return { holds: ends.length + held + negative === 0, line };
}

/** The providers bill at most the balance and X, in every seed. */
export function evaluateBill(outcomes: readonly WaveOutcome[]): HoldFinding {
  const shares = outcomes.map(({ billedUsd, fundsUsd }) => billedUsd / fundsUsd);
  const exceeded = outcomes.filter((outcome) => calculateBillShare(outcome) > 1).length;
  return {
    holds: exceeded === 0,
    line: `billed ${formatPercents(shares, Math.max)} of the money; above the money and X in ${exceeded} of ${outcomes.length} seeds`,
  };
}

/** The ledger agrees with the bill, where the provider reported the usage, and by estimate where it did not. */
export function evaluateLedger(outcomes: readonly WaveOutcome[]): HoldFinding {
  const rows = outcomes.map(({ billedUsd, bookedUsd, reported }) => ({
    reported: calculateDifference(reported.bookedUsd, reported.billedUsd),
    total: calculateDifference(bookedUsd, billedUsd),
    unreportedShare: billedUsd === 0 ? 0 : 1 - reported.billedUsd / billedUsd,
  }));
  const listValues = (key: 'reported' | 'total' | 'unreportedShare') => rows.map((row) => row[key]);
  return {
    holds: rows.every(({ reported, total, unreportedShare }) => {
      return reported <= MAX_DIFFERENCE && total <= MAX_DIFFERENCE + MAX_ESTIMATE_DIFFERENCE * unreportedShare;
    }),
    line:
      `the ledger differs from the bill by ${formatPercents(listValues('reported'), Math.max)} where usage was reported, ` +
      `by ${formatPercents(listValues('total'), Math.max)} in all; ` +
      `${formatPercents(listValues('unreportedShare'), Math.max)} of the bill was not reported`,
  };
}

/** In every seed, at least `minComplete` responses are complete. */
export function evaluateComplete(outcomes: readonly WaveOutcome[], minComplete: number): HoldFinding {
  const complete = outcomes.map((outcome) => countEnds(outcome, 'complete'));
  return {
    holds: Math.min(...complete) >= minComplete,
    line: `${formatCounts(outcomes)}; at least ${minComplete} in each seed`,
  };
}

/** On average, at least `minComplete` responses are complete. */
export function evaluateMeanComplete(outcomes: readonly WaveOutcome[], minComplete: number): HoldFinding {
  const complete = mean(outcomes.map((outcome) => countEnds(outcome, 'complete')));
  const shares = outcomes.map(calculateTruncatedShare);
  return {
    holds: complete >= minComplete,
    line: `${formatCounts(outcomes)}; at least ${minComplete} on average; truncated responses took ${formatPercents(shares, Math.max)} of what was spent`,
  };
}

/** On average, at most `maxShare` of what is spent pays for truncated responses. */
export function evaluateTruncatedShare(outcomes: readonly WaveOutcome[], maxShare: number): HoldFinding {
  const shares = outcomes.map(calculateTruncatedShare);
  return {
    holds: mean(shares) <= maxShare,
    line: `in all of these waves, truncated responses took ${formatPercents(shares, Math.max)} of what was spent; at most ${toPercent(maxShare)} on average`,
  };
}

/** A warning, if the host was too slow for the speed of the providers. */
export function warnOfSlowness(outcomes: readonly WaveOutcome[]): string | undefined {
  const slowness = mean(outcomes.flatMap(({ requests }) => requests.flatMap((request) => request.slowness ?? [])));
  if (slowness <= MAX_SLOWNESS) return undefined;
  return `WARNING: responses took ${slowness.toFixed(2)} times as long as they should; this host is too slow`;
}

/** Returns one line about one wave. */
export function describeWave(outcome: WaveOutcome): string {
  const ends = Map.groupBy(outcome.requests, ({ end }) => end);
  const slowness = mean(outcome.requests.flatMap((request) => request.slowness ?? []));
  return [
    outcome.wave.name,
    [...ends].map(([end, { length }]) => `${length} ${end}`).join(', '),
    `money ${outcome.fundsUsd.toFixed(4)}`,
    `billed ${outcome.billedUsd.toFixed(4)}`,
    `booked ${outcome.bookedUsd.toFixed(4)}`,
    `reported ${outcome.reported.billedUsd.toFixed(4)}`,
    `charged ${sum([...outcome.chargedUsd.values()]).toFixed(4)}`,
    `truncated ${toPercent(calculateTruncatedShare(outcome))}`,
    `slowness ${slowness.toFixed(2)}`,
  ].join(' | ');
}

function formatCounts(outcomes: readonly WaveOutcome[]): string {
  const format = (end: string, select: (...values: number[]) => number) => {
    const counts = outcomes.map((outcome) => countEnds(outcome, end));
    return `${mean(counts).toFixed(1)} (${select(...counts)})`;
  };
  return `complete ${format('complete', Math.min)}, truncated ${format('truncated', Math.max)}, rejected ${format('402', Math.max)}`;
}

function calculateDifference(booked: number, billed: number): number {
  return billed === 0 ? booked : Math.abs(booked - billed) / billed;
}

function formatPercents(shares: readonly number[], select: (...values: number[]) => number): string {
  return `${toPercent(mean(shares))} (${toPercent(select(...shares))})`;
}

function toPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
