import { WorkParts } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

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
export async function closeSchema(schema: unknown, parts = new WorkParts()): Promise<unknown> {
  if (!isJsonObject(schema)) return schema;
  await parts.rest();
  const closed: Record<string, unknown> = { ...schema };
  for (const keyword of SUBSCHEMA_KEYWORDS)
    if (isJsonObject(closed[keyword])) closed[keyword] = await closeSchema(closed[keyword], parts);
  for (const keyword of SUBSCHEMA_LIST_KEYWORDS)
    if (Array.isArray(closed[keyword])) closed[keyword] = await closeList(closed[keyword], parts);
  for (const keyword of SUBSCHEMA_MAP_KEYWORDS)
    if (isJsonObject(closed[keyword])) closed[keyword] = await closeMap(closed[keyword], parts);
  if (closed.type === 'object' && typeof (closed.additionalProperties ?? true) !== 'object')
    closed.additionalProperties = false;
  return closed;
}

async function closeList(schemas: readonly unknown[], parts: WorkParts): Promise<readonly unknown[]> {
  const closed: unknown[] = [];
  for (const schema of schemas) closed.push(await closeSchema(schema, parts));
  return closed;
}

async function closeMap(schemas: JsonObject, parts: WorkParts): Promise<JsonObject> {
  const closed: Record<string, unknown> = { ...schemas };
  for (const name in schemas) closed[name] = await closeSchema(schemas[name], parts);
  return closed;
}
