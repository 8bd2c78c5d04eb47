import type { JsonObject } from './body.ts';

/** Where a schema has one more, a list of more, or more by name. */
const ONE = ['items', 'not', 'additionalProperties'];
const LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const NAMED = ['properties', '$defs', 'definitions'];

/**
 * The schema with every object closed. OpenAI demands that only of strict ones; Anthropic demands it of all
 * (`'additionalProperties' must be explicitly set to false`), and what a closed one allows an open one allows too. Objects
 * whose further properties have a schema stay as they are: closed they would be empty.
 */
export function closedSchema(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
  const closed = Object.entries(schema).map(([keyword, value]) => {
    if (ONE.includes(keyword)) return [keyword, closedSchema(value)];
    if (LIST.includes(keyword) && Array.isArray(value)) return [keyword, value.map(closedSchema)];
    if (!NAMED.includes(keyword) || typeof value !== 'object' || value === null) return [keyword, value];
    return [keyword, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closedSchema(each)]))];
  });
  const { type, additionalProperties } = schema as JsonObject;
  const open = type === 'object' && typeof (additionalProperties ?? true) !== 'object';
  return { ...Object.fromEntries(closed), ...(open ? { additionalProperties: false } : {}) };
}
