/** Reads what a provider reports about its bill of a call. Where a response contains it is data of the provider. */
import { getByPath, type ReportedBill } from '#application';
import { type PicoUsd, parseUsd } from '#kernel';
import { parseTokenCount } from './parse-reported.ts';

export interface BillFormat {
  /** Path of the cost in USD in a response, such as `usage.cost`. Of a stream, in the event with the usage. */
  readonly cost?: string | undefined;
  /**
   * Path of a flag. If it is true, the operator's own account at another provider pays for the call, and the cost is a
   * fee for that.
   */
  readonly paidElsewhere?: string | undefined;
  /**
   * Paths of conditions of the price, such as a tier, with the values to which the prices of the catalogue apply. A
   * condition that a response omits is one of them.
   */
  readonly terms?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Path of the total of all tokens, and of its disjoint parts, all of which are charged. */
  readonly tokens?: { readonly total: string; readonly parts: readonly string[] } | undefined;
}

/** More than any call costs. A higher cost is not stored. */
const MAX_COST_USD = 10_000;
const USD_DECIMALS = 12;
/** A decimal that is not negative, as JSON numbers are written. */
const DECIMAL = /^\d{1,40}(\.\d{1,40})?(e[+-]?\d{1,3})?$/i;
/** Names of conditions are words. Others are dropped, because they are stored and logged. */
const TERM = /^[\w.:-]{1,40}$/;

/** Never throws: a report that cannot be read must not fail a response that can. Runs for each event with a usage. */
export function parseReportedBill(response: unknown, { cost, paidElsewhere, terms, tokens }: BillFormat): ReportedBill {
  const bill: { -readonly [Field in keyof ReportedBill]: ReportedBill[Field] } = {};
  const reported = cost === undefined ? undefined : getByPath(response, cost);
  if (reported !== undefined && reported !== null && !(paidElsewhere && getByPath(response, paidElsewhere) === true)) {
    const amount = parseCost(reported);
    if (amount === undefined) bill.isImplausible = true;
    else bill.cost = amount;
  }
  for (const path in terms) {
    const value = getByPath(response, path);
    if (typeof value !== 'string' || terms[path]?.includes(value) || !TERM.test(value)) continue;
    bill.terms = { ...bill.terms, [path.slice(path.lastIndexOf('.') + 1)]: value };
  }
  const total = tokens && parseTokenCount(getByPath(response, tokens.total));
  if (tokens && total !== undefined) {
    const parts = tokens.parts.map((path) => parseTokenCount(getByPath(response, path)) ?? 0);
    bill.uncountedTokens = Math.max(total - parts.reduce((sum, count) => sum + count, 0), 0);
  }
  return bill;
}

/** Combines the reports of several events of one stream. A later report replaces an earlier one. */
export function mergeReportedBills(earlier: ReportedBill, { terms, ...later }: ReportedBill): ReportedBill {
  return { ...earlier, ...later, ...(terms ? { terms: { ...earlier.terms, ...terms } } : {}) };
}

/** Parses a number or decimal, also with an exponent, and rounds it to the nearest pico-USD. */
function parseCost(value: unknown): PicoUsd | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  const usd = Number(value);
  if (!DECIMAL.test(String(value)) || usd > MAX_COST_USD) return undefined;
  try {
    return parseUsd(value);
  } catch {
    // More than 12 decimals, of which a sum of binary fractions has several: 0.1 + 0.2 is 0.30000000000000004.
    return parseUsd(usd.toFixed(USD_DECIMALS));
  }
}
