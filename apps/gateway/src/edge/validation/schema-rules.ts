/**
 * Checks of what is inside a body, by the same JSON Schema that the documentation shows. So whatever looks into it behind the
 * edge may rely on its shape, for every model alike. Known here: `type`, `properties`, `required`, `items`, `minItems`,
 * `minLength`, `enum`, `const`, and `if` with `then` and `else`; what a schema does not name is let through.
 */
import type { JsonSchema } from '../../openapi/operation.ts';
import { Field } from '../../openapi/request-schema.ts';
import { BadRequestError } from '../errors/errors.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What is wrong first, and where: `messages[0].content[1].type`. */
export interface SchemaViolation {
  readonly path: string;
  readonly must: string;
}

/** Returns undefined when the value is as it must be. */
type Check = (value: unknown) => SchemaViolation | undefined;

const TYPES: Readonly<Record<string, { readonly words: string; is(value: unknown): boolean }>> = {
  object: { words: 'an object', is: isObject },
  array: { words: 'an array', is: Array.isArray },
  string: { words: 'a string', is: (value) => typeof value === 'string' },
  number: { words: 'a number', is: (value) => typeof value === 'number' },
  integer: { words: 'a whole number', is: (value) => Number.isSafeInteger(value) },
  boolean: { words: 'a boolean', is: (value) => typeof value === 'boolean' },
  null: { words: 'null', is: (value) => value === null },
};

/** Schemas as functions: they are checked with every request, and read only once. */
function checkOf(schema: JsonSchema): Check {
  const { type, enum: values, const: constant, minLength = 0 } = schema;
  const types = typesOf(schema).map((each) => TYPES[each]?.is ?? (() => false));
  const [ofType, isOneOf, isConst] = [wrong(oneOf(typesOf(schema))), listed(values), wrong(String(constant))];
  const [inList, inObject] = [checkOfList(schema), checkOfObject(schema)];
  const short = wrong('a non-empty string');
  return (value) => {
    if (type !== undefined && !types.some((is) => is(value))) return ofType;
    if (isOneOf && !(values as readonly unknown[]).includes(value)) return isOneOf;
    if (constant !== undefined && value !== constant) return isConst;
    if (typeof value === 'string') return value.length < Number(minLength) ? short : undefined;
    if (Array.isArray(value)) return inList(value);
    return isObject(value) ? inObject(value) : undefined;
  };
}

function checkOfList({ items, minItems = 0 }: JsonSchema): (list: readonly unknown[]) => SchemaViolation | undefined {
  const empty = wrong('a non-empty array');
  const check = items === undefined ? undefined : checkOf(items as JsonSchema);
  return (list) => {
    if (list.length < Number(minItems)) return empty;
    if (!check) return undefined;
    for (let i = 0; i < list.length; i++) {
      const found = check(list[i]);
      if (found) return within(`[${i}]`, found);
    }
    return undefined;
  };
}

function checkOfObject(schema: JsonSchema): (object: Fields) => SchemaViolation | undefined {
  const rules = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const checks = Object.entries(rules).map(([name, rule]) => [name, checkOf(rule)] as const);
  const missing = missingOf(schema, rules);
  return (object) => {
    for (const [name, check] of checks) {
      if (!has(object, name)) continue;
      const found = check(object[name]);
      if (found) return within(name, found);
    }
    return missing(object);
  };
}

/** What an object must have and has not, which may depend on what it has. */
function missingOf(
  schema: JsonSchema,
  rules: Readonly<Record<string, JsonSchema>>,
): (object: Fields) => SchemaViolation | undefined {
  const { required = [], if: condition, then = {}, else: otherwise = {} } = schema;
  const names = required as readonly string[];
  const own = (object: Fields) => {
    const name = names.find((each) => !has(object, each));
    return name === undefined ? undefined : { path: name, must: mustOf(rules[name]) };
  };
  if (condition === undefined) return own;
  const holds = checkOfObject(condition as JsonSchema);
  const [met, unmet] = [missingOf(then as JsonSchema, rules), missingOf(otherwise as JsonSchema, rules)];
  return (object) => own(object) ?? (holds(object) ? unmet : met)(object);
}

function has(object: Fields, name: string): boolean {
  return object[name] !== undefined && Object.hasOwn(object, name);
}

function wrong(must: string): SchemaViolation {
  return { path: '', must };
}

function listed(values: unknown): SchemaViolation | undefined {
  return Array.isArray(values) ? wrong(`one of ${values.join(', ')}`) : undefined;
}

function typesOf({ type }: JsonSchema): readonly string[] {
  return type === undefined ? [] : ([type].flat() as string[]);
}

function mustOf(schema: JsonSchema = {}): string {
  return schema.type === undefined ? 'given' : oneOf(typesOf(schema));
}

function oneOf(types: readonly string[]): string {
  return types.map((type) => TYPES[type]?.words ?? type).join(' or ');
}

/** The same mistake, as seen from where the value is a part. */
function within(place: string, { path, must }: SchemaViolation): SchemaViolation {
  const isNext = path === '' || path.startsWith('[');
  return { path: isNext ? `${place}${path}` : `${place}.${path}`, must };
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// --- as rules of a request ------------------------------------------------------------------------------------------

const shapes = new WeakMap<object, Map<string, { readonly check: Check; readonly optional: boolean }>>();

/** The field is as the schema says, to its depth. */
export function MatchesSchema(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => declare(prototype, property, schema, false);
}

/** The same, where the field is there and not null. */
export function MatchesSchemaIfPresent(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => declare(prototype, property, schema, true);
}

function declare(prototype: object, property: string | symbol, schema: JsonSchema, optional: boolean): void {
  Field(schema, !optional)(prototype, property);
  shapes.set(
    prototype,
    (shapes.get(prototype) ?? new Map()).set(String(property), { check: checkOf(schema), optional }),
  );
}

/** Whether a class has fields with a shape, or one that it extends. */
export function hasSchemaRules({ prototype }: { readonly prototype: object }): boolean {
  for (let of = prototype; of !== null; of = Object.getPrototypeOf(of)) if (shapes.has(of)) return true;
  return false;
}

/** @throws BadRequestError that names the place of what is wrong */
export function assertMatchesSchemas(checked: object): void {
  for (let of = Object.getPrototypeOf(checked); of !== null; of = Object.getPrototypeOf(of)) {
    for (const [field, { check, optional }] of shapes.get(of) ?? []) {
      const value = (checked as Fields)[field];
      if (optional && (value ?? null) === null) continue;
      const found = check(value);
      if (!found) continue;
      const { path, must } = within(field, found);
      throw new BadRequestError(`${path} must be ${must}`, path);
    }
  }
}
