/**
 * Validates the content of a body by the JSON Schema that the documentation publishes. All code after the edge can rely
 * on the format of the content, for every model alike. Supported keywords: `type`, `properties`, `required`, `items`,
 * `minItems`, `minLength`, `enum`, `const`, `propertyNames` with a `pattern` and a `description`, and `if` with `then`
 * and `else`, which may contain `required` and another `if`. Content that a schema does not mention is accepted.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import type { JsonSchema } from '../../openapi/operation.ts';
import { Field } from '../../openapi/request-schema.ts';
import { BadRequestError } from '../errors/errors.ts';

/** The first violation, and its path such as `messages[0].content[1].type`. */
export interface SchemaViolation {
  readonly path: string;
  readonly expected: string;
}

/** Returns undefined for a valid value. */
type Check = (value: unknown) => SchemaViolation | undefined;

const TYPES: Readonly<Record<string, { readonly description: string; matches(value: unknown): boolean }>> = {
  object: { description: 'an object', matches: isJsonObject },
  array: { description: 'an array', matches: Array.isArray },
  string: { description: 'a string', matches: (value) => typeof value === 'string' },
  number: { description: 'a number', matches: (value) => typeof value === 'number' },
  integer: { description: 'an integer', matches: (value) => Number.isSafeInteger(value) },
  boolean: { description: 'a boolean', matches: (value) => typeof value === 'boolean' },
  null: { description: 'null', matches: (value) => value === null },
};

/** Compiles a schema once, because every request is checked against it. */
function compileCheck(schema: JsonSchema): Check {
  const { type, enum: values, const: constant, minLength = 0 } = schema;
  const types = getTypes(schema).map((typeName) => TYPES[typeName]?.matches ?? (() => false));
  const [typeViolation, enumViolation, constViolation] = [
    createViolation(formatTypes(getTypes(schema))),
    toEnumViolation(values),
    createViolation(String(constant)),
  ];
  const [checkList, checkObject] = [compileListCheck(schema), compileObjectCheck(schema)];
  const lengthViolation = createViolation('a non-empty string');
  return (value) => {
    if (type !== undefined && !types.some((is) => is(value))) return typeViolation;
    if (enumViolation && !(values as readonly unknown[]).includes(value)) return enumViolation;
    if (constant !== undefined && value !== constant) return constViolation;
    if (typeof value === 'string') return value.length < Number(minLength) ? lengthViolation : undefined;
    if (Array.isArray(value)) return checkList(value);
    return isJsonObject(value) ? checkObject(value) : undefined;
  };
}

function compileListCheck({
  items,
  minItems = 0,
}: JsonSchema): (list: readonly unknown[]) => SchemaViolation | undefined {
  const emptyViolation = createViolation('a non-empty array');
  const check = items === undefined ? undefined : compileCheck(items as JsonSchema);
  return (list) => {
    if (list.length < Number(minItems)) return emptyViolation;
    if (!check) return undefined;
    for (let i = 0; i < list.length; i++) {
      const violation = check(list[i]);
      if (violation) return prefixPath(`[${i}]`, violation);
    }
    return undefined;
  };
}

function compileObjectCheck(schema: JsonSchema): (object: JsonObject) => SchemaViolation | undefined {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const checks = Object.entries(properties).map(([name, rule]) => [name, compileCheck(rule)] as const);
  const checkRequired = compileRequiredCheck(schema, properties);
  const checkNames = compileNamesCheck(schema);
  return (object) => {
    const namesViolation = checkNames?.(object);
    if (namesViolation) return namesViolation;
    for (const [name, check] of checks) {
      if (!hasField(object, name)) continue;
      const violation = check(object[name]);
      if (violation) return prefixPath(name, violation);
    }
    return checkRequired(object);
  };
}

function compileNamesCheck({ propertyNames }: JsonSchema): Check | undefined {
  if (propertyNames === undefined) return undefined;
  const { pattern, description } = propertyNames as JsonSchema;
  const [name, violation] = [new RegExp(String(pattern)), createViolation(`an object whose names are ${description}`)];
  return (object) => (Object.keys(object as JsonObject).every((key) => name.test(key)) ? undefined : violation);
}

/** Checks the required fields of an object, which may depend on its other fields. */
function compileRequiredCheck(
  schema: JsonSchema,
  properties: Readonly<Record<string, JsonSchema>>,
): (object: JsonObject) => SchemaViolation | undefined {
  const { required = [], if: condition, then = {}, else: otherwise = {} } = schema;
  const names = required as readonly string[];
  const checkRequired = (object: JsonObject) => {
    const name = names.find((requiredName) => !hasField(object, requiredName));
    return name === undefined ? undefined : { path: name, expected: describeExpected(properties[name]) };
  };
  if (condition === undefined) return checkRequired;
  const checkCondition = compileObjectCheck(condition as JsonSchema);
  const [checkThen, checkElse] = [
    compileRequiredCheck(then as JsonSchema, properties),
    compileRequiredCheck(otherwise as JsonSchema, properties),
  ];
  return (object) => checkRequired(object) ?? (checkCondition(object) ? checkElse : checkThen)(object);
}

/** Reading a missing field takes several times as long if no other object has the same fields. So this comes last. */
function hasField(object: JsonObject, name: string): boolean {
  return Object.hasOwn(object, name) && object[name] !== undefined;
}

function createViolation(expected: string): SchemaViolation {
  return { path: '', expected };
}

function toEnumViolation(values: unknown): SchemaViolation | undefined {
  return Array.isArray(values) ? createViolation(`one of ${values.join(', ')}`) : undefined;
}

function getTypes({ type }: JsonSchema): readonly string[] {
  return type === undefined ? [] : ([type].flat() as string[]);
}

function describeExpected(schema: JsonSchema = {}): string {
  return schema.type === undefined ? 'given' : formatTypes(getTypes(schema));
}

function formatTypes(types: readonly string[]): string {
  return types.map((type) => TYPES[type]?.description ?? type).join(' or ');
}

/** Returns the same violation with the path of the parent before its own. */
function prefixPath(parentPath: string, { path, expected }: SchemaViolation): SchemaViolation {
  const isNext = path === '' || path.startsWith('[');
  return { path: isNext ? `${parentPath}${path}` : `${parentPath}.${path}`, expected };
}

// --- as rules of a request ------------------------------------------------------------------------------------------

const rulesByPrototype = new WeakMap<object, Map<string, { readonly check: Check; readonly optional: boolean }>>();

/** The field must match the schema at every depth. */
export function MatchesSchema(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => registerSchemaRule(prototype, property, schema, false);
}

/** The field must match the schema unless it is missing or null. */
export function MatchesSchemaIfPresent(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => registerSchemaRule(prototype, property, schema, true);
}

function registerSchemaRule(prototype: object, property: string | symbol, schema: JsonSchema, optional: boolean): void {
  Field(schema, !optional)(prototype, property);
  rulesByPrototype.set(
    prototype,
    (rulesByPrototype.get(prototype) ?? new Map()).set(String(property), { check: compileCheck(schema), optional }),
  );
}

/** Whether a class or one of its base classes has fields with a schema. */
export function hasSchemaRules({ prototype }: { readonly prototype: object }): boolean {
  for (let ancestor = prototype; ancestor !== null; ancestor = Object.getPrototypeOf(ancestor))
    if (rulesByPrototype.has(ancestor)) return true;
  return false;
}

/** @throws BadRequestError with the path of the first violation */
export function assertMatchesSchemas(checked: object): void {
  for (let ancestor = Object.getPrototypeOf(checked); ancestor !== null; ancestor = Object.getPrototypeOf(ancestor)) {
    for (const [field, { check, optional }] of rulesByPrototype.get(ancestor) ?? []) {
      const value = (checked as JsonObject)[field];
      if (optional && (value ?? null) === null) continue;
      const violation = check(value);
      if (!violation) continue;
      const { path, expected } = prefixPath(field, violation);
      throw new BadRequestError(`${path} must be ${expected}`, path);
    }
  }
}
