/** Recomputes charges from the usage and the published prices, independently of the code that charges. */

import type { ChargedPart, TariffLine } from './event-readings.ts';
import { type Fraction, roundUpToInteger, sumFractions } from './fraction.ts';

/** Maps a unit to its fallback unit, whose cost or price applies if the unit itself has none that applies. */
const FALLBACK_UNITS: Readonly<Record<string, string>> = {
  cacheRead: 'input',
  cacheWrite: 'input',
  cacheWriteHour: 'cacheWrite',
  imageInput: 'input',
  reasoning: 'output',
  imageOutput: 'output',
};
const INPUT_UNITS = ['input', 'cacheRead', 'cacheWrite', 'cacheWriteHour', 'imageInput'];

/**
 * Returns cost and price, each rounded up once. The price of absorbed usage is 0.
 * @returns undefined if the cost or the price of a used unit is unknown
 */
export function recomputeCharge(
  part: ChargedPart,
  lines: readonly TariffLine[],
): { cost: bigint; price: bigint } | undefined {
  const inputTokens = INPUT_UNITS.reduce((sum, unit) => sum + (part.usage[unit] ?? 0), 0);
  const terms = { inputTokens, ...part.terms };
  const cost = calculateAmount(part, lines, 'cost', terms);
  const price = calculateAmount(part, lines, 'price', terms);
  if (cost === undefined || price === undefined) return undefined;
  return { cost, price: part.absorbed ? 0n : price };
}

type AmountField = 'cost' | 'price';
type Terms = ChargedPart['terms'];

function calculateAmount(
  { usage }: ChargedPart,
  lines: readonly TariffLine[],
  amount: AmountField,
  terms: Terms,
): bigint | undefined {
  const amounts: Fraction[] = [];
  for (const [unit, quantity] of Object.entries(usage)) {
    const unitAmount = findUnitAmount(unit, lines, amount, terms);
    if (!unitAmount) return undefined;
    amounts.push({ numerator: unitAmount.numerator * BigInt(quantity), denominator: unitAmount.denominator });
  }
  return roundUpToInteger(sumFractions(amounts));
}

/**
 * Returns the cost or price per unit. It is 0 if all lines of the unit and its fallback units have only the other
 * amount, since a provider may bill by another unit than the one that is sold.
 * @returns undefined if these units have no lines, or if none of their lines with this amount has its conditions met
 */
function findUnitAmount(
  unit: string,
  lines: readonly TariffLine[],
  amount: AmountField,
  terms: Terms,
): Fraction | undefined {
  const units = listPricingUnits(unit);
  const candidateLines = units.flatMap((candidateUnit) => lines.filter((line) => line.unit === candidateUnit));
  const match = candidateLines.find((line) => line[amount] !== null && meetsConditions(line, terms));
  if (match) return match[amount] as Fraction;
  return candidateLines.length > 0 && candidateLines.every((line) => line[amount] === null)
    ? { numerator: 0n, denominator: 1n }
    : undefined;
}

function listPricingUnits(unit: string): readonly string[] {
  const next = FALLBACK_UNITS[unit];
  return next === undefined ? [unit] : [unit, ...listPricingUnits(next)];
}

function meetsConditions({ when }: TariffLine, terms: Terms): boolean {
  return Object.entries(when).every(([name, condition]) => {
    const term = terms[name];
    if (term === undefined) return false;
    return typeof condition === 'string' ? String(term) === condition : Number(term) > condition.above;
  });
}
