/** The schema of a request, read from the rules that it is checked by. */
import { getMetadataStorage } from 'class-validator';
import type { Dto, JsonSchema } from './operation.ts';

type Keywords = (constraints: readonly unknown[]) => JsonSchema;

const RULES: Readonly<Record<string, Keywords>> = {
  isString: () => ({ type: 'string' }),
  isBoolean: () => ({ type: 'boolean' }),
  isInt: () => ({ type: 'integer' }),
  isNumber: () => ({ type: 'number' }),
  isArray: () => ({ type: 'array' }),
  isObject: () => ({ type: 'object' }),
  isIn: ([values]) => ({ enum: values }),
  min: ([minimum]) => ({ minimum }),
  max: ([maximum]) => ({ maximum }),
  isLength: ([minLength, maxLength]) => ({ type: 'string', minLength, maxLength }),
  minLength: ([minLength]) => ({ type: 'string', minLength }),
  maxLength: ([maxLength]) => ({ type: 'string', maxLength }),
  arrayNotEmpty: () => ({ type: 'array', minItems: 1 }),
  arrayMinSize: ([minItems]) => ({ type: 'array', minItems }),
  arrayMaxSize: ([maxItems]) => ({ type: 'array', maxItems }),
};

/** What is known of a field beyond class-validator's rules. */
interface Description {
  readonly schema: JsonSchema;
  /** Whether it must be there, where something else than these rules checks that. */
  readonly required?: boolean | undefined;
}

const described = new WeakMap<object, Map<string, Description>>();

/**
 * Describes a field beyond its rules: its meaning, or its type where something else checks it.
 * @param required whether it must be there and not null; left out where its rules say so
 */
export function Field(schema: JsonSchema, required?: boolean): PropertyDecorator {
  return (prototype, property) => {
    const fields = described.get(prototype) ?? new Map<string, Description>();
    described.set(prototype, fields.set(String(property), { schema, required }));
  };
}

export function requestSchema(type: Dto): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const optional = new Set<string>();
  const nullableFields = new Set<string>();
  const ruled = new Set<string>();
  for (const rule of getMetadataStorage().getTargetValidationMetadatas(type, '', false, false)) {
    const { propertyName, type: kind, name = '', constraints, each } = rule;
    ruled.add(propertyName);
    if (kind === 'conditionalValidation') optional.add(propertyName);
    if (name === 'isOptional') nullableFields.add(propertyName);
    const keywords = RULES[name]?.(constraints ?? []) ?? {};
    properties[propertyName] = { ...(each ? { items: keywords } : keywords), ...properties[propertyName] };
  }
  for (const [name, { schema, required }] of descriptionsOf(type)) {
    properties[name] = { ...properties[name], ...schema };
    if (required === true) ruled.add(name);
    if (required === false) nullableFields.add(name);
  }
  for (const name of nullableFields) properties[name] = orNull(properties[name] ?? {});
  const required = Object.keys(properties).filter((name) => ruled.has(name) && !optional.has(name));
  // What nothing is said of may have any fields.
  if (Object.keys(properties).length === 0) return { type: 'object' };
  if (required.length === 0) return { type: 'object', properties };
  // What must be there is what a reader looks for first.
  const inOrder = Object.fromEntries(required.map((name) => [name, properties[name]]));
  return { type: 'object', properties: { ...inOrder, ...properties }, required };
}

/** The class and its base classes, the nearest last. */
function descriptionsOf(type: Dto): [string, Description][] {
  const all: [string, Description][] = [];
  for (let each = type.prototype; each !== null; each = Object.getPrototypeOf(each)) {
    all.unshift(...(described.get(each) ?? []));
  }
  return all;
}

function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum)) return { ...schema, enum: [...schema.enum, null] };
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
}
