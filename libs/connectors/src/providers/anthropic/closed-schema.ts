import { type JsonObject } from '#kernel';

/** Where a schema has one more, a list of more, or more by name. */
const SUBSCHEMA_KEYWORDS = ['items', 'not', 'additionalProperties'];
const SUBSCHEMA_LIST_KEYWORDS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const SUBSCHEMA_MAP_KEYWORDS = ['properties', '$defs', 'definitions'];

/**
 * The schema with every object closed. OpenAI demands that only of strict ones; Anthropic demands it of all
 * (`'additionalProperties' must be explicitly set to false`), and what a closed one allows an open one allows too. Objects
 * whose further properties have a schema stay as they are: closed they would be empty.
 */
export function closeSchema(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
  const closed = Object.entries(schema).map(([keyword, value]) => {
    if (SUBSCHEMA_KEYWORDS.includes(keyword)) return [keyword, closeSchema(value)];
    if (SUBSCHEMA_LIST_KEYWORDS.includes(keyword) && Array.isArray(value)) return [keyword, value.map(closeSchema)];
    if (!SUBSCHEMA_MAP_KEYWORDS.includes(keyword) || typeof value !== 'object' || value === null)
      return [keyword, value];
    return [
      keyword,
      Object.fromEntries(Object.entries(value).map(([name, subschema]) => [name, closeSchema(subschema)])),
    ];
  });
  const { type, additionalProperties } = schema as JsonObject;
  const open = type === 'object' && typeof (additionalProperties ?? true) !== 'object';
  return { ...Object.fromEntries(closed), ...(open ? { additionalProperties: false } : {}) };
}
