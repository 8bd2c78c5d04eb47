/** Derives the JSON Schema of a request from its validation rules. */
import { getMetadataStorage } from 'class-validator';
import type { Dto, JsonSchema } from './operation.ts';

type Keywords = (constraints: readonly unknown[]) => JsonSchema;

const KEYWORDS_BY_RULE: Readonly<Record<string, Keywords>> = {
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

/** What describes a field in addition to its class-validator rules. */
interface FieldDescription {
  readonly schema: JsonSchema;
  /** Whether the field is required, if no class-validator rule checks that. */
  readonly required?: boolean | undefined;
}

const descriptions = new WeakMap<object, Map<string, FieldDescription>>();

/**
 * Describes a field in addition to its rules: its meaning, or its type if other code checks it.
 * @param required whether the field must be present and not null; omitted if its rules determine that
 */
export function Field(schema: JsonSchema, required?: boolean): PropertyDecorator {
  return (prototype, property) => {
    const fields = descriptions.get(prototype) ?? new Map<string, FieldDescription>();
    descriptions.set(prototype, fields.set(String(property), { schema, required }));
  };
}

export function createRequestSchema(type: Dto): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const optional = new Set<string>();
  const nullableFields = new Set<string>();
  const validatedFields = new Set<string>();
  for (const rule of getMetadataStorage().getTargetValidationMetadatas(type, '', false, false)) {
    const { propertyName, type: kind, name = '', constraints, each: isPerItem } = rule;
    validatedFields.add(propertyName);
    if (kind === 'conditionalValidation') optional.add(propertyName);
    if (name === 'isOptional') nullableFields.add(propertyName);
    const keywords = KEYWORDS_BY_RULE[name]?.(constraints ?? []) ?? {};
    properties[propertyName] = { ...(isPerItem ? { items: keywords } : keywords), ...properties[propertyName] };
  }
  for (const [name, { schema, required }] of listDescriptions(type)) {
    properties[name] = { ...properties[name], ...schema };
    if (required === true) validatedFields.add(name);
    if (required !== false) continue;
    optional.add(name);
    nullableFields.add(name);
  }
  for (const name of nullableFields) properties[name] = allowNull(properties[name] ?? {});
  const required = Object.keys(properties).filter((name) => validatedFields.has(name) && !optional.has(name));
  // A class without described fields accepts any fields.
  if (Object.keys(properties).length === 0) return { type: 'object' };
  if (required.length === 0) return { type: 'object', properties };
  // Required fields come first for the reader.
  const inOrder = Object.fromEntries(required.map((name) => [name, properties[name]]));
  return { type: 'object', properties: { ...inOrder, ...properties }, required };
}

/** Lists the descriptions of the class and its base classes. Those of the class come last and take precedence. */
function listDescriptions(type: Dto): [string, FieldDescription][] {
  const all: [string, FieldDescription][] = [];
  for (let prototype = type.prototype; prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
    all.unshift(...(descriptions.get(prototype) ?? []));
  }
  return all;
}

function allowNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum)) return { ...schema, enum: [...schema.enum, null] };
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
}
