/** Rules for what stands in a data file. Each says what is wrong and where, so that the line can be found. */
import { money } from '#kernel';

/** Names and indexes that lead from the top of a file to a value. */
export type JsonPath = readonly (string | number)[];

/** Something in a data file is not as it must be. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError';

  constructor(
    message: string,
    readonly path: JsonPath,
  ) {
    super(message);
  }
}

/** A value by what it belongs to, such as `model "openai/gpt-5"`, and the field within that. */
export interface FieldLocation {
  readonly owner: string;
  readonly field: string;
  readonly path: JsonPath;
}

export type ValidationRule = (value: unknown, place: FieldLocation) => void;

export function toFieldLocation(owner: string, ...path: JsonPath): FieldLocation {
  return { owner, field: '', path };
}

export function withParent({ owner, field, path }: FieldLocation, ...names: JsonPath): FieldLocation {
  const dotted = (each: string | number) => (typeof each === 'number' ? `[${each}]` : `.${each}`);
  const whole = field + names.map(dotted).join('');
  return { owner, field: whole.replace(/^\./, ''), path: [...path, ...names] };
}

/** @returns the error that says it: `endpoints[0].margin of model "vendor/model" predicateRule be …` */
export function createDataFileError(place: FieldLocation, what: string): DataFileError {
  return new DataFileError(`${place.field ? `${place.field} of ${place.owner}` : place.owner} ${what}`, place.path);
}

export const predicateRule =
  (what: string, holds: (value: unknown) => boolean): ValidationRule =>
  (value, place) => {
    if (!holds(value)) throw createDataFileError(place, `must be ${what}`);
  };

export const matches = (what: string, pattern: RegExp): ValidationRule =>
  predicateRule(what, (it) => typeof it === 'string' && pattern.test(it));

export const optional =
  (rule: ValidationRule): ValidationRule =>
  (value, place) => {
    if (value !== undefined) rule(value, place);
  };

export const isObject = predicateRule('an object', (it) => typeof it === 'object' && it !== null && !Array.isArray(it));

/** No field may be missing, and none may be unknown: a misspelt price would be no price. */
export const object =
  (rules: Readonly<Record<string, ValidationRule>>): ValidationRule =>
  (value, place) => {
    isObject(value, place);
    const fields = value as Readonly<Record<string, unknown>>;
    for (const name in fields)
      if (!Object.hasOwn(rules, name))
        throw new DataFileError(createDataFileError(place, `has an unknown field "${name}"`).message, [
          ...place.path,
          name,
        ]);
    for (const [name, rule] of Object.entries(rules)) rule(fields[name], withParent(place, name));
  };

/** An object with fields of any name. */
export const mapRule =
  (rule: ValidationRule): ValidationRule =>
  (value, place) => {
    isObject(value, place);
    for (const [name, each] of Object.entries(value as object)) rule(each, withParent(place, name));
  };

export const listRule =
  (rule: ValidationRule): ValidationRule =>
  (value, place) => {
    predicateRule('a list with something in it', (it) => Array.isArray(it) && it.length > 0)(value, place);
    for (const [i, each] of (value as readonly unknown[]).entries()) rule(each, withParent(place, i));
  };

export const enumRule = (words: readonly string[]) =>
  predicateRule(`one of ${words.join(', ')}`, (value) => words.includes(value as string));

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
export const text = predicateRule('a text', isText);
export const texts = listRule(text);
export const flag = predicateRule('true or false', (value) => typeof value === 'boolean');
export const count = predicateRule(
  'a whole number above 0',
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
);
export const countOrNone = predicateRule(
  'a whole number from 0',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
export const positive = predicateRule('a number above 0', (value) => typeof value === 'number' && value > 0);
export const share = predicateRule('a share from 0 to 1', (it) => typeof it === 'number' && it >= 0 && it <= 1);
export const amount = predicateRule(
  'an amount of USD as text, such as "0.25"',
  (value) => read(value, money.parseUsd) >= 0n,
);
export const factor = predicateRule('a factor as text, such as "1.055"', (value) => read(value, parseMargin) > 0n);
export const day = predicateRule('a day, such as "2026-11-20"', isDay);

/** Price = cost × this ÷ 10,000. */
export function parseMargin(margin: string): bigint {
  return money.parseScaled(margin, 4);
}

/** A decimal, or -1 where it is none, or is finer than it can be kept. */
function read(value: unknown, decimal: (text: string) => bigint): bigint {
  try {
    return typeof value === 'string' ? decimal(value) : -1n;
  } catch {
    return -1n;
  }
}

function isDay(value: unknown): boolean {
  const date = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === value;
}

/** The first that is there before, and which one it is. */
export function findDuplicate(names: readonly string[]): readonly [string, number] | undefined {
  const i = names.findIndex((name, at) => names.indexOf(name) !== at);
  return i < 0 ? undefined : [names[i] as string, i];
}
