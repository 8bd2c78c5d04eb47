/** Generates values that match a JSON schema. */

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

/** Chooses where a schema allows several values: returns an integer from 0 to `possibilities - 1`. */
export type Picker = (possibilities: number) => number;

/** Always chooses the first possibility. */
export const PICK_FIRST: Picker = () => 0;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Chooses pseudo-randomly, always the same for the same seed. The hash is FNV-1a, the generator mulberry32. */
export function createPicker(seed: string): Picker {
  let state = FNV_OFFSET;
  for (let at = 0; at < seed.length; at++) state = Math.imul(state ^ seed.charCodeAt(at), FNV_PRIME);
  return (possibilities) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * possibilities);
  };
}

/** Deeper values become null: a schema that requires itself has no finite value. */
const MAX_DEPTH = 32;
/** From this depth on the first possibility is chosen, such as no optional properties, so that recursive values end. */
const MAX_OPTIONAL_DEPTH = 4;

/**
 * Returns a value that matches the schema as far as its keywords are supported: `pattern`, `not` and conditions, for
 * example, are ignored.
 */
export function createSample(schema: unknown, picker: Picker): unknown {
  return sample(schema, { root: schema, picker, depth: 0 });
}

interface SampleContext {
  /** The schema that references are resolved against. */
  readonly root: unknown;
  readonly picker: Picker;
  readonly depth: number;
}

function sample(rawSchema: unknown, { root, picker, depth }: SampleContext): unknown {
  const schema = removeInvalidKeywords(rawSchema);
  if (depth > MAX_DEPTH) return null;
  const pick = depth < MAX_OPTIONAL_DEPTH ? picker : PICK_FIRST;
  const next = (subschema: unknown) => sample(subschema, { root, picker, depth: depth + 1 });
  if (schema.$ref !== undefined) return next(resolveReference(schema.$ref, root));
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[pick(schema.enum.length)];
  if (schema.default !== undefined) return schema.default;
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return next(either[pick(either.length)]);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(next));
  switch (getSchemaType(schema)) {
    case 'object':
      return Object.fromEntries(
        selectPropertyNames(schema, pick).map((name) => [name, next(schema.properties?.[name])]),
      );
    case 'array':
      return Array.from({ length: selectLength(schema, pick) }, () => next(schema.items));
    case 'integer':
    case 'number':
      return createNumber(schema, pick);
    case 'boolean':
      return pick(2) === 0;
    case 'null':
      return null;
    default:
      return createText(schema, pick);
  }
}

const LISTS: ReadonlySet<string> = new Set(['enum', 'anyOf', 'oneOf', 'allOf', 'required']);
const SIZES: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength']);
/** Larger lengths in a schema are ignored. */
const MAX_SIZE = 10_000;

/** Removes keywords with invalid values, such as `required: null`: clients with bugs send them. */
function removeInvalidKeywords(rawSchema: unknown): Schema {
  if (typeof rawSchema !== 'object' || rawSchema === null) return {};
  const isValidKeyword = ([keyword, value]: readonly [string, unknown]) => {
    if (LISTS.has(keyword)) return Array.isArray(value) && value.length > 0;
    if (SIZES.has(keyword)) return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_SIZE;
    if (keyword === 'properties') return typeof value === 'object' && value !== null;
    if (keyword === 'type') return typeof value === 'string' || (Array.isArray(value) && value.length > 0);
    return keyword !== '$ref' || typeof value === 'string';
  };
  return Object.fromEntries(Object.entries(rawSchema).filter(isValidKeyword));
}

function getSchemaType({ type, properties }: Schema): string | undefined {
  if (properties) return 'object';
  return typeof type === 'string' || type === undefined ? type : type[0];
}

/** @param ref a path within the schema: `#/$defs/name` */
function resolveReference(ref: string, root: unknown): unknown {
  const step = (at: unknown, name: string) => (at as Readonly<Record<string, unknown>> | undefined)?.[name];
  return ref.split('/').slice(1).reduce(step, root);
}

/** Returns the names of the required properties and of some optional ones. */
function selectPropertyNames({ properties = {}, required = [] }: Schema, pick: Picker): readonly string[] {
  const optionalNames = Object.keys(properties).filter((name) => !required.includes(name));
  return [...required, ...optionalNames.filter(() => pick(2) === 1)];
}

/** Maximum number of items beyond `minItems`. */
const MAX_EXTRA_ITEMS = 3;

function selectLength({ minItems = 0, maxItems = minItems + MAX_EXTRA_ITEMS }: Schema, pick: Picker): number {
  return minItems + pick(Math.min(maxItems - minItems, MAX_EXTRA_ITEMS) + 1);
}

/** Maximum distance of a number from the first possible one, in steps. */
const MAX_NUMBER_STEPS = 1_000;

function createNumber(schema: Schema, pick: Picker): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf: step = 1 } = schema;
  const min = minimum ?? (exclusiveMinimum === undefined ? Number.NEGATIVE_INFINITY : exclusiveMinimum + step);
  const max = maximum ?? (exclusiveMaximum === undefined ? Number.POSITIVE_INFINITY : exclusiveMaximum - step);
  // A range such as 0 to 1 contains no multiple of 1 if its bounds are excluded.
  if (min > max) return ((minimum ?? exclusiveMinimum ?? 0) + (maximum ?? exclusiveMaximum ?? 0)) / 2;
  const first = Math.min(Math.ceil(Math.max(step, min) / step) * step, max);
  const steps = Math.floor(Math.min(max - first, MAX_NUMBER_STEPS * step) / step);
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

function createText(
  { format = '', minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema,
  pick: Picker,
): string {
  const text = FORMATS[format] ?? (TEXTS[pick(TEXTS.length)] as string);
  return text.padEnd(minLength, '.').slice(0, maxLength);
}
