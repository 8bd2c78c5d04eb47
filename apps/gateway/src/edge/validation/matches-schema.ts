/**
 * Validates the content of a body by the JSON Schema that the documentation publishes. All code after the edge can rely
 * on the format of the content, for every model alike. Content that a schema does not mention is accepted.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { type JsonObject } from '#kernel';
import type { JsonSchema } from '../../openapi/operation.ts';
import { Field } from '../../openapi/request-schema.ts';
import { BadRequestError } from '../errors/errors.ts';

/** `verbose` adds the schema to errors, from which the sentence is made; `ownProperties` ignores inherited fields. */
const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false, verbose: true, ownProperties: true });

interface SchemaRule {
  readonly schema: JsonSchema;
  readonly optional: boolean;
  /** Compiled by the first request that has the field, so that no process compiles what nobody sends to it. */
  validate?: ValidateFunction;
}

const rulesByPrototype = new WeakMap<object, Map<string, SchemaRule>>();

/** The field must match the schema at every depth. */
export function MatchesSchema(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => registerSchemaRule(prototype, property, { schema, optional: false });
}

/** The field must match the schema unless it is missing or null. */
export function MatchesSchemaIfPresent(schema: JsonSchema): PropertyDecorator {
  return (prototype, property) => registerSchemaRule(prototype, property, { schema, optional: true });
}

function registerSchemaRule(prototype: object, property: string | symbol, rule: SchemaRule): void {
  Field(rule.schema, !rule.optional)(prototype, property);
  const schemaRules = rulesByPrototype.get(prototype) ?? new Map();
  rulesByPrototype.set(prototype, schemaRules.set(String(property), rule));
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
    for (const [field, rule] of rulesByPrototype.get(ancestor) ?? []) {
      const value = (checked as JsonObject)[field];
      if (rule.optional && (value ?? null) === null) continue;
      const error = findViolation(rule, value);
      if (!error) continue;
      const path = field + formatPath(value, error);
      throw new BadRequestError(`${path} must be ${describeExpected(error, rule.schema)}`, path);
    }
  }
}

function findViolation(rule: SchemaRule, value: unknown): ErrorObject | undefined {
  rule.validate ??= ajv.compile(rule.schema);
  if (rule.validate(value)) return undefined;
  const [error] = rule.validate.errors ?? [];
  rule.validate.errors = null; // they refer to the body, which would stay in memory
  return error;
}

/** @returns for example `[0].content[1].type`; a required field that is missing is the last part */
function formatPath(value: unknown, { instancePath, keyword, params }: ErrorObject): string {
  const names = instancePath
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  let path = '';
  let parent = value;
  for (const name of keyword === 'required' ? [...names, String(params.missingProperty)] : names) {
    path += Array.isArray(parent) ? `[${name}]` : `.${name}`;
    parent = (parent as JsonObject)[name];
  }
  return path;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: 'an object',
  array: 'an array',
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
};

function describeExpected(error: ErrorObject, root: JsonSchema): string {
  const { keyword, params, parentSchema = {} } = error;
  switch (keyword) {
    case 'type':
      return describeType(parentSchema);
    case 'required':
      return describeType(findPropertySchema(root, error));
    case 'enum':
      return `one of ${params.allowedValues.join(', ')}`;
    case 'minLength':
      return 'a non-empty string';
    case 'minItems':
      return 'a non-empty array';
    case 'maxItems':
      return `an array of at most ${params.limit} values`;
    case 'pattern':
      return `an object whose names are ${parentSchema.description}`;
    default:
      return 'valid';
  }
}

/** Returns the schema of a missing property, which is with the `required`, or with the `if` whose branch requires it. */
function findPropertySchema(root: JsonSchema, { schemaPath, params }: ErrorObject): JsonSchema {
  const [, ...names] = schemaPath.replace(/(\/then|\/else)*\/required$/, '').split('/');
  const { properties = {} } = names.reduce((schema, name) => schema[name] as JsonSchema, root);
  return ((properties as JsonSchema)[params.missingProperty] ?? {}) as JsonSchema;
}

function describeType({ type }: JsonSchema): string {
  if (type === undefined) return 'given';
  return [type]
    .flat()
    .map((name) => TYPE_NAMES[String(name)] ?? name)
    .join(' or ');
}
