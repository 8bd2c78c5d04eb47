/** Schemas of the values in data files. */
import { z } from 'zod';
import { money } from '#kernel';

/** An invalid field aborts, so that checks of several fields run only on valid ones. */
const toParams = (requirement: string) => ({ error: `must be ${requirement}`, abort: true });

/** @param requirement completes `must be` */
export function patternSchema(requirement: string, pattern: RegExp) {
  return z.string(toParams(requirement)).regex(pattern, toParams(requirement));
}

/** @param requirement completes `must be` */
export function integerSchema(requirement: string, min: number, max = Number.MAX_SAFE_INTEGER) {
  const params = toParams(requirement);
  return z.int(params).min(min, params).max(max, params);
}

function parsedTextSchema(requirement: string, isValid: (value: string) => boolean) {
  return z.string(toParams(requirement)).refine(isValid, toParams(requirement));
}

export function listSchema<S extends z.ZodType>(schema: S) {
  return z.array(schema).min(1, { abort: true });
}

/** An object with fields of any name. */
export function mapSchema<S extends z.ZodType>(schema: S) {
  return z.record(z.string(), schema);
}

export const anyObject = mapSchema(z.unknown());
export const text = patternSchema('a non-empty string', /\S/);
export const texts = listSchema(text);
export const flag = z.boolean();
export const count = integerSchema('a positive integer', 1);
export const countOrZero = integerSchema('a non-negative integer', 0);

const positiveParams = toParams('a number above 0');
export const positive = z.number(positiveParams).gt(0, positiveParams);

const shareParams = toParams('a share from 0 to 1');
export const share = z.number(shareParams).min(0, shareParams).max(1, shareParams);

export const amount = parsedTextSchema(
  'an amount of USD as text, such as "0.25"',
  (value) => parseDecimal(value, money.parseUsd) >= 0n,
);
export const factor = parsedTextSchema(
  'a factor as text, such as "1.055"',
  (value) => parseDecimal(value, parseMargin) > 0n,
);
export const day = parsedTextSchema('a date, such as "2026-11-20"', isDay).meta({ format: 'date' });

/** Where a price was found. */
export const priceSource = z.strictObject({
  url: patternSchema('a URL', /^https:\/\//),
  date: day.describe('When it was found, such as `2026-11-24`.'),
});

/** Returns the margin in 1/10,000. The price is the cost times this number, divided by 10,000. */
export function parseMargin(margin: string): bigint {
  return money.parseScaled(margin, 4);
}

/** @returns -1 if the value is not a decimal, or has too many decimals */
function parseDecimal(value: string, parse: (text: string) => bigint): bigint {
  try {
    return parse(value);
  } catch {
    return -1n; // not a decimal
  }
}

export function isDay(value: unknown): boolean {
  const date = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === value;
}
