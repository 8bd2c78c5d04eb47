import { type JsonObject } from '#kernel';

/** Keywords whose value is a schema, a list of schemas, or a map of schemas. */
const SUBSCHEMA_KEYWORDS = ['items', 'not', 'additionalProperties'];
const SUBSCHEMA_LIST_KEYWORDS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const SUBSCHEMA_MAP_KEYWORDS = ['properties', '$defs', 'definitions'];

/**
 * Sets `additionalProperties: false` on a schema with `type: 'object'`, and on such schemas below the keywords above.
 * OpenAI requires this only for strict schemas, Anthropic for all (`'additionalProperties' must be explicitly set to
 * false`). A closed schema does not allow more than the original one, except below `not` and `oneOf`. Objects whose
 * `additionalProperties` is a schema stay open: they are maps, and closed ones would allow no entries.
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
