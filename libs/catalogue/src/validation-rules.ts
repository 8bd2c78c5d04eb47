/**
 * Validation rules for data files. Their errors have the JSON path of the mistake, so that its line can be reported.
 */
import { money } from '#kernel';

/** Field names and indexes from the root of a file to a value. */
export type JsonPath = readonly (string | number)[];

/** A data file has an invalid or missing value. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError';

  constructor(
    message: string,
    readonly path: JsonPath,
  ) {
    super(message);
  }
}

/**
 * Location of a value: its entry, such as `model "openai/gpt-5"`, the field in this entry, and the path in the file.
 */
export interface FieldLocation {
  readonly owner: string;
  readonly field: string;
  readonly path: JsonPath;
}

export type ValidationRule = (value: unknown, location: FieldLocation) => void;

export function toFieldLocation(owner: string, ...path: JsonPath): FieldLocation {
  return { owner, field: '', path };
}

export function withParent({ owner, field, path }: FieldLocation, ...names: JsonPath): FieldLocation {
  const toPathSegment = (name: string | number) => (typeof name === 'number' ? `[${name}]` : `.${name}`);
  const fullPath = field + names.map(toPathSegment).join('');
  return { owner, field: fullPath.replace(/^\./, ''), path: [...path, ...names] };
}

/** @returns an error such as `endpoints[0].margin of model "vendor/model" must be …` */
export function createDataFileError(location: FieldLocation, problem: string): DataFileError {
  return new DataFileError(
    `${location.field ? `${location.field} of ${location.owner}` : location.owner} ${problem}`,
    location.path,
  );
}

export const predicateRule =
  (requirement: string, isValid: (value: unknown) => boolean): ValidationRule =>
  (value, location) => {
    if (!isValid(value)) throw createDataFileError(location, `must be ${requirement}`);
  };

export const patternRule = (requirement: string, pattern: RegExp): ValidationRule =>
  predicateRule(requirement, (it) => typeof it === 'string' && pattern.test(it));

export const optionalRule =
  (rule: ValidationRule): ValidationRule =>
  (value, location) => {
    if (value !== undefined) rule(value, location);
  };

export const anyObject = predicateRule(
  'an object',
  (it) => typeof it === 'object' && it !== null && !Array.isArray(it),
);

/**
 * Requires all fields without `optionalRule`. Rejects unknown fields, because a price under a misspelt name would
 * otherwise be ignored.
 */
export const objectRule =
  (fieldRules: Readonly<Record<string, ValidationRule>>): ValidationRule =>
  (value, location) => {
    anyObject(value, location);
    const fields = value as Readonly<Record<string, unknown>>;
    for (const name in fields)
      if (!Object.hasOwn(fieldRules, name))
        throw new DataFileError(createDataFileError(location, `has an unknown field "${name}"`).message, [
          ...location.path,
          name,
        ]);
    for (const [name, rule] of Object.entries(fieldRules)) rule(fields[name], withParent(location, name));
  };

/** An object with fields of any name. */
export const mapRule =
  (rule: ValidationRule): ValidationRule =>
  (value, location) => {
    anyObject(value, location);
    for (const [name, item] of Object.entries(value as object)) rule(item, withParent(location, name));
  };

export const listRule =
  (rule: ValidationRule): ValidationRule =>
  (value, location) => {
    predicateRule('a non-empty list', (it) => Array.isArray(it) && it.length > 0)(value, location);
    for (const [i, item] of (value as readonly unknown[]).entries()) rule(item, withParent(location, i));
  };

export const enumRule = (values: readonly string[]) =>
  predicateRule(`one of ${values.join(', ')}`, (value) => values.includes(value as string));

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
export const text = predicateRule('a non-empty string', isText);
export const texts = listRule(text);
export const flag = predicateRule('true or false', (value) => typeof value === 'boolean');
export const count = predicateRule('a positive integer', (value) => Number.isSafeInteger(value) && Number(value) > 0);
export const countOrZero = predicateRule(
  'a non-negative integer',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
export const positive = predicateRule('a number above 0', (value) => typeof value === 'number' && value > 0);
export const share = predicateRule('a share from 0 to 1', (it) => typeof it === 'number' && it >= 0 && it <= 1);
export const amount = predicateRule(
  'an amount of USD as text, such as "0.25"',
  (value) => parseDecimal(value, money.parseUsd) >= 0n,
);
export const factor = predicateRule(
  'a factor as text, such as "1.055"',
  (value) => parseDecimal(value, parseMargin) > 0n,
);
export const day = predicateRule('a date, such as "2026-11-20"', isDay);

/** Returns the margin in 1/10,000. The price is the cost times this number, divided by 10,000. */
export function parseMargin(margin: string): bigint {
  return money.parseScaled(margin, 4);
}

/** @returns -1 if the value is not a decimal string, or has too many decimals */
function parseDecimal(value: unknown, parse: (text: string) => bigint): bigint {
  try {
    return typeof value === 'string' ? parse(value) : -1n;
  } catch {
    return -1n; // not a decimal
  }
}

export function isDay(value: unknown): boolean {
  const date = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === value;
}

/** Returns the first name that occurs a second time, with the index of its second occurrence. */
export function findDuplicate(names: readonly string[]): readonly [string, number] | undefined {
  const i = names.findIndex((name, at) => names.indexOf(name) !== at);
  return i < 0 ? undefined : [names[i] as string, i];
}
