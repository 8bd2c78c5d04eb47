/** The schema of a request, read from the rules that it is checked by. */
import { getMetadataStorage } from 'class-validator';
import type { Dto, Schema } from './operation.ts';

type Keywords = (constraints: readonly unknown[]) => Schema;

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

const described = new WeakMap<object, Map<string, Schema>>();

/** Describes a field beyond its rules: its meaning, or its type where a custom rule checks it. */
export function Field(schema: Schema): PropertyDecorator {
  return (prototype, property) => {
    const fields = described.get(prototype) ?? new Map<string, Schema>();
    described.set(prototype, fields.set(String(property), schema));
  };
}

export function requestSchema(type: Dto): Schema {
  const properties: Record<string, Schema> = {};
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
  for (const [name, schema] of descriptionsOf(type)) properties[name] = { ...properties[name], ...schema };
  for (const name of nullableFields) properties[name] = orNull(properties[name] ?? {});
  const required = Object.keys(properties).filter((name) => ruled.has(name) && !optional.has(name));
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
}

/** The class and its base classes, the nearest last. */
function descriptionsOf(type: Dto): [string, Schema][] {
  const all: [string, Schema][] = [];
  for (let each = type.prototype; each !== null; each = Object.getPrototypeOf(each)) {
    all.unshift(...(described.get(each) ?? []));
  }
  return all;
}

function orNull(schema: Schema): Schema {
  if (Array.isArray(schema.enum)) return { ...schema, enum: [...schema.enum, null] };
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
}
