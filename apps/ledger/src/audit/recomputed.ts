/** The auditor's own arithmetic: what was used, at the prices that were published. */

import type { ChargedPart, Line } from './event-readings.ts';
import { type Fraction, roundUpToInteger, sumFractions } from './fraction.ts';

/** Units without a price of their own are priced as these. */
const AS: Readonly<Record<string, string>> = {
  cacheRead: 'input',
  cacheWrite: 'input',
  cacheWriteHour: 'cacheWrite',
  imageInput: 'input',
  reasoning: 'output',
  imageOutput: 'output',
};
const OF_INPUT = ['input', 'cacheRead', 'cacheWrite', 'cacheWriteHour', 'imageInput'];

/** Cost and price, each rounded once; undefined when something was used that has no price. */
export function recomputeCharge(
  part: ChargedPart,
  lines: readonly Line[],
): { cost: bigint; price: bigint } | undefined {
  const inputTokens = OF_INPUT.reduce((sum, unit) => sum + (part.used[unit] ?? 0), 0);
  const terms = { inputTokens, ...part.terms };
  const cost = amountOf(part, lines, 'cost', terms);
  const price = amountOf(part, lines, 'price', terms);
  if (cost === undefined || price === undefined) return undefined;
  return { cost, price: part.absorbed ? 0n : price };
}

type Amount = 'cost' | 'price';
type Terms = ChargedPart['terms'];

function amountOf({ used }: ChargedPart, lines: readonly Line[], amount: Amount, terms: Terms): bigint | undefined {
  const amounts: Fraction[] = [];
  for (const [unit, quantity] of Object.entries(used)) {
    const each = eachOf(unit, lines, amount, terms);
    if (!each) return undefined;
    amounts.push({ over: each.over * BigInt(quantity), under: each.under });
  }
  return roundUpToInteger(sumFractions(amounts));
}

/** Nothing for a unit that has only the other amount: what is billed by one unit may be sold by another. */
function eachOf(unit: string, lines: readonly Line[], amount: Amount, terms: Terms): Fraction | undefined {
  const units = chainOf(unit);
  const known = units.flatMap((each) => lines.filter((line) => line.unit === each));
  const met = known.find((line) => line[amount] !== null && isMet(line, terms));
  if (met) return met[amount] as Fraction;
  return known.length > 0 && known.every((line) => line[amount] === null) ? { over: 0n, under: 1n } : undefined;
}

function chainOf(unit: string): readonly string[] {
  const next = AS[unit];
  return next === undefined ? [unit] : [unit, ...chainOf(next)];
}

function isMet({ when }: Line, terms: Terms): boolean {
  return Object.entries(when).every(([name, wanted]) => {
    const term = terms[name];
    if (term === undefined) return false;
    return typeof wanted === 'string' ? String(term) === wanted : Number(term) > wanted.above;
  });
}
