/** Values that a JSON schema allows. */

interface Schema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly anyOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly allOf?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly items?: unknown;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

/** Decides wherever a schema leaves a choice: one of so many possibilities, from 0. */
export type Chance = (possibilities: number) => number;

/** The first and the least of everything. */
export const LEAST: Chance = () => 0;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Decides at random, but always the same for the same seed. The hash is FNV-1a, the generator mulberry32. */
export function chanceOf(seed: string): Chance {
  let state = FNV_OFFSET;
  for (let at = 0; at < seed.length; at++) state = Math.imul(state ^ seed.charCodeAt(at), FNV_PRIME);
  return (possibilities) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * possibilities);
  };
}

/** Deeper than any schema that can be fulfilled goes: one that requires itself has no end. */
const DEEPEST = 32;
/** From here on nothing is added that is not required, so that a schema that allows itself comes to an end. */
const DEEP = 4;

/** A value that the schema allows; `pattern`, `not` and conditions are not looked at. */
export function sampleOf(schema: unknown, chance: Chance): unknown {
  return sample(schema, { root: schema, chance, depth: 0 });
}

interface Place {
  /** What references start from. */
  readonly root: unknown;
  readonly chance: Chance;
  readonly depth: number;
}

function sample(given: unknown, { root, chance, depth }: Place): unknown {
  const schema = wellFormed(given);
  if (depth > DEEPEST) return null;
  const pick = depth < DEEP ? chance : LEAST;
  const next = (each: unknown) => sample(each, { root, chance, depth: depth + 1 });
  if (schema.$ref !== undefined) return next(resolve(schema.$ref, root));
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[pick(schema.enum.length)];
  if (schema.default !== undefined) return schema.default;
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return next(either[pick(either.length)]);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(next));
  switch (typeOf(schema)) {
    case 'object':
      return Object.fromEntries(namesOf(schema, pick).map((name) => [name, next(schema.properties?.[name])]));
    case 'array':
      return Array.from({ length: lengthOf(schema, pick) }, () => next(schema.items));
    case 'integer':
    case 'number':
      return numberFor(schema, pick);
    case 'boolean':
      return pick(2) === 0;
    case 'null':
      return null;
    default:
      return textFor(schema, pick);
  }
}

const LISTS: ReadonlySet<string> = new Set(['enum', 'anyOf', 'oneOf', 'allOf', 'required']);
const SIZES: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength']);
/** No answer is longer. */
const LARGEST = 10_000;

/** The schema without what no schema may have, such as `required: null`: clients with bugs send it. */
function wellFormed(given: unknown): Schema {
  if (typeof given !== 'object' || given === null) return {};
  const fits = ([keyword, value]: readonly [string, unknown]) => {
    if (LISTS.has(keyword)) return Array.isArray(value) && value.length > 0;
    if (SIZES.has(keyword)) return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LARGEST;
    if (keyword === 'properties') return typeof value === 'object' && value !== null;
    if (keyword === 'type') return typeof value === 'string' || (Array.isArray(value) && value.length > 0);
    return keyword !== '$ref' || typeof value === 'string';
  };
  return Object.fromEntries(Object.entries(given).filter(fits));
}

function typeOf({ type, properties }: Schema): string | undefined {
  if (properties) return 'object';
  return typeof type === 'string' || type === undefined ? type : type[0];
}

/** @param ref a path within the schema: `#/$defs/name` */
function resolve(ref: string, root: unknown): unknown {
  const step = (at: unknown, name: string) => (at as Readonly<Record<string, unknown>> | undefined)?.[name];
  return ref.split('/').slice(1).reduce(step, root);
}

/** What is required, and some of the rest. */
function namesOf({ properties = {}, required = [] }: Schema, pick: Chance): readonly string[] {
  const others = Object.keys(properties).filter((name) => !required.includes(name));
  return [...required, ...others.filter(() => pick(2) === 1)];
}

/** How many more items than necessary an array has at most. */
const MORE_ITEMS = 3;

function lengthOf({ minItems = 0, maxItems = minItems + MORE_ITEMS }: Schema, pick: Chance): number {
  return minItems + pick(Math.min(maxItems - minItems, MORE_ITEMS) + 1);
}

/** How far from the least one a number is at most. */
const WIDEST = 1_000;

function numberFor(schema: Schema, pick: Chance): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf: step = 1 } = schema;
  const least = minimum ?? (exclusiveMinimum === undefined ? Number.NEGATIVE_INFINITY : exclusiveMinimum + step);
  const most = maximum ?? (exclusiveMaximum === undefined ? Number.POSITIVE_INFINITY : exclusiveMaximum - step);
  // Between 0 and 1 is no whole number.
  if (least > most) return ((minimum ?? exclusiveMinimum ?? 0) + (maximum ?? exclusiveMaximum ?? 0)) / 2;
  const first = Math.min(Math.ceil(Math.max(step, least) / step) * step, most);
  const steps = Math.floor(Math.min(most - first, WIDEST * step) / step);
  return first + step * pick(steps + 1);
}

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  time: '12:00:00Z',
  'date-time': '2026-01-31T12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '0b6e4a2c-1d3f-4c5a-8b7e-9f0a1b2c3d4e',
};
const TEXTS = ['text', 'coin', 'a line of the book', 'what is counted twice', 'Ur'];

function textFor({ format = '', minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema, pick: Chance): string {
  const text = FORMATS[format] ?? (TEXTS[pick(TEXTS.length)] as string);
  return text.padEnd(minLength, '.').slice(0, maxLength);
}
