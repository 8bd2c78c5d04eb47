/** Validates schemas of responses and strict tools as Anthropic does, which enforces a part of JSON Schema. */
import { invalidRequestError } from './errors.ts';

type Schema = Readonly<Record<string, unknown>>;

const UNSUPPORTED: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['maxItems', 'uniqueItems', 'contains'],
  object: ['patternProperties', 'minProperties', 'maxProperties', 'propertyNames'],
};

/** @throws HttpError 400 in Anthropic's format */
export function assertEnforceable(schema: unknown, name: string): void {
  assertNode(schema, { name, root: schema, references: [] });
}

interface Position {
  readonly name: string;
  readonly root: unknown;
  /** The references that lead here. */
  readonly references: readonly string[];
}

function assertNode(schema: unknown, position: Position): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { name, root, references } = position;
  const { type, additionalProperties, minItems, oneOf, $ref } = schema as Schema;
  if (type === 'object' && additionalProperties !== false)
    throw invalidRequestError(`${name}: For 'object' type, 'additionalProperties' must be explicitly set to false`);
  if (oneOf) throw invalidRequestError(`${name}: Schema type 'oneOf' is not supported`);
  const unsupported = (UNSUPPORTED[String(type)] ?? []).filter((keyword) => keyword in schema);
  if (unsupported.length > 0)
    throw invalidRequestError(`${name}: For '${type}' type, properties ${unsupported.join(', ')} are not supported`);
  if (type === 'array' && minItems !== undefined && minItems !== 0 && minItems !== 1)
    throw invalidRequestError(`${name}: For 'array' type, 'minItems' values other than 0 or 1 are not supported`);
  if (typeof $ref === 'string') {
    if (references.includes($ref)) throw invalidRequestError(`${name}: Recursive schemas are not supported: ${$ref}`);
    const target = $ref
      .split('/')
      .slice(1)
      .reduce((at: unknown, key) => (at as Schema | undefined)?.[key], root);
    assertNode(target, { ...position, references: [...references, $ref] });
  }
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties' || keyword === '$defs' || keyword === 'definitions')
      for (const subschema of Object.values(value ?? {})) assertNode(subschema, position);
    else if (Array.isArray(value)) for (const subschema of value) assertNode(subschema, position);
    else assertNode(value, position);
  }
}
