/**
 * Checks of what is inside a body, by the same JSON Schema that the documentation shows. So whatever looks into it behind the
 * edge may rely on its shape, for every model alike. Known here: `type`, `properties`, `required`, `items`, `minItems`,
 * `minLength`, `enum`, `const`, and `if` with `then` and `else`; what a schema does not name is let through.
 */
import { Allow, IsOptional } from 'class-validator';
import type { Schema } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { InvalidRequest } from './errors.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What is wrong first, and where: `messages[0].content[1].type`. */
export interface Mismatch {
  readonly path: string;
  readonly must: string;
}

const TYPES: Readonly<Record<string, { readonly words: string; is(value: unknown): boolean }>> = {
  object: { words: 'an object', is: isObject },
  array: { words: 'an array', is: Array.isArray },
  string: { words: 'a string', is: (value) => typeof value === 'string' },
  number: { words: 'a number', is: (value) => typeof value === 'number' },
  integer: { words: 'a whole number', is: (value) => Number.isSafeInteger(value) },
  boolean: { words: 'a boolean', is: (value) => typeof value === 'boolean' },
  null: { words: 'null', is: (value) => value === null },
};

/** @returns undefined when the value is as the schema says */
export function mismatch(schema: Schema, value: unknown, path: string): Mismatch | undefined {
  const wrong = (must: string) => ({ path, must });
  const { type, enum: values, const: constant, minLength = 0 } = schema;
  const types = type === undefined ? [] : ([type].flat() as string[]);
  if (types.length > 0 && !types.some((each) => TYPES[each]?.is(value))) return wrong(oneOf(types));
  if (Array.isArray(values) && !values.includes(value)) return wrong(`one of ${values.join(', ')}`);
  if (constant !== undefined && value !== constant) return wrong(String(constant));
  if (typeof value === 'string') return value.length < Number(minLength) ? wrong('a non-empty string') : undefined;
  if (Array.isArray(value)) return inList(schema, value, path);
  return isObject(value) ? inObject(schema, value, path) : undefined;
}

function inList({ items, minItems = 0 }: Schema, list: readonly unknown[], path: string): Mismatch | undefined {
  if (list.length < Number(minItems)) return { path, must: 'a non-empty array' };
  if (items === undefined) return undefined;
  for (const [i, each] of list.entries()) {
    const found = mismatch(items as Schema, each, `${path}[${i}]`);
    if (found) return found;
  }
  return undefined;
}

function inObject(schema: Schema, object: Fields, path: string): Mismatch | undefined {
  const rules = (schema.properties ?? {}) as Readonly<Record<string, Schema>>;
  for (const name in rules) {
    if (!Object.hasOwn(object, name) || object[name] === undefined) continue;
    const found = mismatch(rules[name] as Schema, object[name], at(path, name));
    if (found) return found;
  }
  const missing = requiredOf(schema, object).find((name) => !Object.hasOwn(object, name) || object[name] === undefined);
  return missing === undefined ? undefined : { path: at(path, missing), must: mustOf(rules[missing]) };
}

/** What an object of this schema must have, which may depend on what it has. */
function requiredOf(
  { required = [], if: condition, then, else: otherwise }: Schema,
  object: Fields,
): readonly string[] {
  if (condition === undefined) return required as readonly string[];
  const more = inObject(condition as Schema, object, '') ? otherwise : then;
  return [...(required as readonly string[]), ...requiredOf((more ?? {}) as Schema, object)];
}

function mustOf({ type }: Schema = {}): string {
  return type === undefined ? 'given' : oneOf([type].flat() as string[]);
}

function oneOf(types: readonly string[]): string {
  return types.map((type) => TYPES[type]?.words ?? type).join(' or ');
}

function at(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// --- as rules of a request ------------------------------------------------------------------------------------------

const shapes = new WeakMap<object, Map<string, { readonly schema: Schema; readonly optional: boolean }>>();

/** The field is as the schema says, to its depth. */
export function Shaped(schema: Schema): PropertyDecorator {
  return (prototype, property) => declare(prototype, property, schema, false);
}

/** The same, where the field is there and not null. */
export function ShapedIfGiven(schema: Schema): PropertyDecorator {
  return (prototype, property) => declare(prototype, property, schema, true);
}

function declare(prototype: object, property: string | symbol, schema: Schema, optional: boolean): void {
  (optional ? IsOptional() : Allow())(prototype, property);
  Field(schema)(prototype, property);
  shapes.set(prototype, (shapes.get(prototype) ?? new Map()).set(String(property), { schema, optional }));
}

/** @throws InvalidRequest that names the place of what is wrong */
export function assertShaped(checked: object): void {
  for (let of = Object.getPrototypeOf(checked); of !== null; of = Object.getPrototypeOf(of)) {
    for (const [field, { schema, optional }] of shapes.get(of) ?? []) {
      const value = (checked as Fields)[field];
      if (optional && (value ?? null) === null) continue;
      const wrong = mismatch(schema, value, field);
      if (wrong) throw new InvalidRequest(`${wrong.path} must be ${wrong.must}`, wrong.path);
    }
  }
}
