/**
 * Compares JSON with a schema of `npm run contracts`, and lists every deviation. Of a union, the member with the fewest
 * deviations counts, so that one unknown field is one deviation and not one for each member.
 */
import { isJsonObject } from '#kernel';

/** The keywords that the generated schemas use. */
export interface ContractSchema {
  readonly $ref?: string;
  readonly anyOf?: readonly ContractSchema[];
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, ContractSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: ContractSchema | boolean;
  readonly items?: ContractSchema;
}

export interface Deviation {
  /** Path without indexes, such as `messages[].tool_calls[].index`. */
  readonly path: string;
  readonly problem: 'unknown field' | 'missing field' | 'invalid value';
  /** The value, shortened; empty for a missing field. */
  readonly value: string;
}

export type Definitions = Readonly<Record<string, ContractSchema>>;

const MAX_VALUE_LENGTH = 80;
/** The start of each reference. */
const DEFINITION = '#/$defs/';

export function findDeviations(value: unknown, schema: ContractSchema, definitions: Definitions): readonly Deviation[] {
  return compare(value, schema, { definitions, path: '' });
}

interface Location {
  readonly definitions: Definitions;
  readonly path: string;
}

function compare(value: unknown, schema: ContractSchema, at: Location): readonly Deviation[] {
  const resolved = resolve(schema, at.definitions);
  const { anyOf, type } = resolved;
  if (anyOf) return compareUnion(value, anyOf, at);
  const isListed = 'const' in resolved ? resolved.const === value : (resolved.enum?.includes(value) ?? true);
  if (!isListed || !isOfType(value, resolved)) {
    return [{ path: at.path, problem: 'invalid value', value: format(value) }];
  }
  if (Array.isArray(value) && resolved.items) {
    const { items } = resolved;
    return value.flatMap((element) => compare(element, items, { ...at, path: `${at.path}[]` }));
  }
  return isJsonObject(value) && type === 'object' ? compareObject(value, resolved, at) : [];
}

function compareObject(
  value: Readonly<Record<string, unknown>>,
  { properties = {}, required = [], additionalProperties = true }: ContractSchema,
  at: Location,
): readonly Deviation[] {
  const missing = required.filter((name) => value[name] === undefined);
  return [
    ...missing.map((name) => ({ path: joinPath(at.path, name), problem: 'missing field' as const, value: '' })),
    ...Object.entries(value).flatMap(([name, field]): readonly Deviation[] => {
      const path = joinPath(at.path, name);
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (property) return compare(field, property, { ...at, path });
      if (additionalProperties === false) return [{ path, problem: 'unknown field', value: format(field) }];
      if (additionalProperties === true) return [];
      return compare(field, additionalProperties, { ...at, path: `${at.path}{}` });
    }),
  ];
}

/** Members whose distinctive fields (such as `type` and `role`) have other values are not considered. */
function compareUnion(value: unknown, anyOf: readonly ContractSchema[], at: Location): readonly Deviation[] {
  const ofType = flatten(anyOf, at.definitions).filter((member) => isOfType(value, member));
  const candidates = isJsonObject(value)
    ? ofType.filter((member) => !contradicts(value, member, at.definitions))
    : ofType;
  let closest: readonly Deviation[] | undefined;
  for (const member of candidates) {
    const deviations = compare(value, member, at);
    if (deviations.length === 0) return [];
    if (!closest || deviations.length < closest.length) closest = deviations;
  }
  if (closest) return closest;
  const name = isJsonObject(value) ? ['type', 'role', 'object'].find((field) => field in value) : undefined;
  const reported = isJsonObject(value) && name !== undefined ? value[name] : value;
  const path = name === undefined ? at.path : joinPath(at.path, name);
  return [{ path, problem: 'invalid value', value: format(reported) }];
}

function contradicts(
  value: Readonly<Record<string, unknown>>,
  member: ContractSchema,
  definitions: Definitions,
): boolean {
  return Object.entries(member.properties ?? {}).some(([name, property]) => {
    const field = value[name];
    const { const: expected } = resolve(property, definitions);
    return typeof expected === 'string' && typeof field === 'string' && field !== expected;
  });
}

/** The members of unions, because the same unions are compared again and again. */
const FLATTENED = new WeakMap<readonly ContractSchema[], readonly ContractSchema[]>();

/** Returns the members of a union and of the unions in it. */
function flatten(anyOf: readonly ContractSchema[], definitions: Definitions): readonly ContractSchema[] {
  const cached = FLATTENED.get(anyOf);
  if (cached) return cached;
  const members = anyOf.flatMap((member) => {
    const resolved = resolve(member, definitions);
    return resolved.anyOf ? flatten(resolved.anyOf, definitions) : [resolved];
  });
  FLATTENED.set(anyOf, members);
  return members;
}

function resolve(schema: ContractSchema, definitions: Definitions): ContractSchema {
  let current = schema;
  while (current.$ref !== undefined) {
    const name = current.$ref.slice(DEFINITION.length);
    const definition = definitions[name];
    if (!definition) throw new Error(`the contract has no definition "${name}"`);
    current = definition;
  }
  return current;
}

function isOfType(value: unknown, { type }: ContractSchema): boolean {
  if (type === undefined) return true;
  const types = [type].flat();
  if (Number.isInteger(value) && types.includes('integer')) return true;
  return types.includes(value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
}

function joinPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function format(value: unknown): string {
  return (JSON.stringify(value) ?? '').slice(0, MAX_VALUE_LENGTH);
}
