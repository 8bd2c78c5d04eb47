/**
 * Converts a JSON schema to the part of JSON Schema that Anthropic enforces, for responses and strict tools:
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
 */
import { stringifyJson, WorkParts } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);
const DEFINITIONS = ['$defs', 'definitions'] as const;
/** Keywords that restrict nothing. */
const OMITTED: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', ...DEFINITIONS]);
/** Keywords that apply to the values of one type only, by the type. */
const KEYWORDS_BY_TYPE: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties']],
  ['array', ['items', 'minItems', 'maxItems', 'prefixItems']],
  ['string', ['format', 'minLength', 'maxLength', 'pattern']],
]);
/** Types whose values contain other values. */
const CONTAINER_TYPES: ReadonlySet<unknown> = new Set(['object', 'array']);
const TYPES: ReadonlySet<unknown> = new Set([...CONTAINER_TYPES, 'string', 'number', 'integer', 'boolean', 'null']);

/**
 * Moves keywords that Anthropic rejects to `description`, where the model reads them. Closes objects, which Anthropic
 * requires: `'additionalProperties' must be explicitly set to false`.
 * @returns undefined if nothing similar can be enforced: for a recursive schema, a map, an object or a value of any kind,
 *   or several schemas in `allOf`
 */
export async function toStructuredSchema(schema: unknown, parts = new WorkParts()): Promise<JsonObject | undefined> {
  const conversion = new SchemaConversion(parts);
  const converted = await conversion.convertRoot(schema);
  return (await conversion.isEnforceable()) ? converted : undefined;
}

class SchemaConversion {
  private isSupported = true;
  /** The referenced definitions by the definition that contains the reference; '#' is the root. */
  private readonly references = new Map<string, Set<string>>();

  constructor(private readonly parts: WorkParts) {}

  async convertRoot(schema: unknown): Promise<JsonObject> {
    if (!isJsonObject(schema)) return this.reject();
    const definitions: Record<string, unknown> = {};
    for (const keyword of DEFINITIONS) {
      const schemas = schema[keyword];
      if (!isJsonObject(schemas)) continue;
      definitions[keyword] = await this.convertMap(schemas, (name) => this.addOwner(`#/${keyword}/${name}`));
    }
    return { ...(await this.convert(schema, this.addOwner('#'))), ...definitions };
  }

  /** Whether all of the schema was converted, and its references lead to definitions and not in a circle. */
  async isEnforceable(): Promise<boolean> {
    if (!this.isSupported) return false;
    const dependents = new Map<string, string[]>();
    const missing = new Map<string, number>();
    for (const [owner, targets] of this.references) {
      await this.parts.rest();
      missing.set(owner, targets.size);
      for (const target of targets) {
        const owners = dependents.get(target) ?? [];
        owners.push(owner);
        dependents.set(target, owners);
      }
    }
    const resolved = [...this.references.keys()].filter((owner) => missing.get(owner) === 0);
    for (const target of resolved) {
      await this.parts.rest();
      for (const owner of dependents.get(target) ?? []) {
        const count = Number(missing.get(owner)) - 1;
        missing.set(owner, count);
        if (count === 0) resolved.push(owner);
      }
    }
    return resolved.length === this.references.size;
  }

  private addOwner(owner: string): string {
    this.references.set(owner, new Set());
    return owner;
  }

  private reject(): JsonObject {
    this.isSupported = false;
    return {};
  }

  private async convert(schema: unknown, owner: string): Promise<JsonObject> {
    if (!isJsonObject(schema) || !this.isSupported) return this.reject();
    await this.parts.rest();
    const {
      $ref,
      type,
      anyOf,
      oneOf,
      allOf,
      description,
      title,
      enum: values,
      const: value,
      ...otherKeywords
    } = schema;
    if ($ref !== undefined) return this.convertReference($ref, owner);
    const texts = { description, title };
    if (Array.isArray(allOf)) {
      if (allOf.length > 1 || anyOf || oneOf || type) return this.reject();
      return this.describe(await this.convert(allOf[0], owner), texts, otherKeywords);
    }
    const alternatives = anyOf ?? oneOf;
    if (Array.isArray(alternatives)) {
      const converted: JsonObject[] = [];
      for (const alternative of alternatives) converted.push(await this.convert(alternative, owner));
      return this.describe({ anyOf: converted }, texts, { ...otherKeywords, ...(anyOf && oneOf ? { oneOf } : {}) });
    }
    if (Array.isArray(values) && values.length > 0 && values.every(isPrimitive))
      return this.describe({ enum: values }, texts, otherKeywords);
    if (value !== undefined && isPrimitive(value)) return this.describe({ const: value }, texts, otherKeywords);
    const literals = { ...(values ? { enum: values } : {}), ...(value === undefined ? {} : { const: value }) };
    if (Array.isArray(type) && type.some((name) => CONTAINER_TYPES.has(name))) {
      const types = new Set(type);
      if (!types.isSubsetOf(TYPES)) return this.reject();
      return this.convert({ ...texts, ...divideByType(types, otherKeywords) }, owner);
    }
    return this.convertType({ ...otherKeywords, ...literals, type: type ?? inferType(otherKeywords) }, texts, owner);
  }

  private convertReference(ref: unknown, owner: string): JsonObject {
    if (typeof ref !== 'string') return this.reject();
    this.references.get(owner)?.add(ref);
    return { $ref: ref };
  }

  private async convertType({ type, ...keywords }: JsonObject, texts: JsonObject, owner: string): Promise<JsonObject> {
    switch (type) {
      case undefined:
        return this.reject();
      case 'object': {
        const { properties, required, additionalProperties, ...otherKeywords } = keywords;
        const isMap = !isJsonObject(properties) && additionalProperties !== false;
        if (isMap || isJsonObject(additionalProperties)) return this.reject();
        const converted = isJsonObject(properties) ? await this.convertMap(properties, () => owner) : {};
        return this.describe(
          { type, properties: converted, additionalProperties: false, ...(required ? { required } : {}) },
          texts,
          otherKeywords,
        );
      }
      case 'array': {
        const { items, minItems, ...otherKeywords } = keywords;
        const isEnforced = minItems === 0 || minItems === 1;
        return this.describe(
          {
            type,
            ...(isJsonObject(items) ? { items: await this.convert(items, owner) } : {}),
            ...(isEnforced ? { minItems } : {}),
          },
          texts,
          { ...otherKeywords, ...(isEnforced ? {} : { minItems }) },
        );
      }
      default: {
        const { format, ...otherKeywords } = keywords;
        const isEnforced = FORMATS.has(format);
        return this.describe({ type, ...(isEnforced ? { format } : {}) }, texts, isEnforced ? otherKeywords : keywords);
      }
    }
  }

  private async convertMap(schemas: JsonObject, getOwner: (name: string) => string): Promise<JsonObject> {
    const converted: [string, JsonObject][] = [];
    for (const [name, schema] of Object.entries(schemas))
      converted.push([name, await this.convert(schema, getOwner(name))]);
    return Object.fromEntries(converted); // an assignment would lose a property named `__proto__`
  }

  /** Adds the texts of a schema and, in its description, the keywords that are not enforced. */
  private async describe(
    converted: JsonObject,
    { description, title }: JsonObject,
    keywords: JsonObject,
  ): Promise<JsonObject> {
    const remaining = Object.entries(keywords).filter(([name, value]) => value !== undefined && !OMITTED.has(name));
    const texts = [
      ...(typeof description === 'string' ? [description] : []),
      ...(remaining.length > 0 ? [await stringifyJson(Object.fromEntries(remaining))] : []),
    ];
    return {
      ...converted,
      ...(title === undefined ? {} : { title }),
      ...(texts.length > 0 ? { description: texts.join('\n\n') } : {}),
    };
  }
}

function isPrimitive(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

function inferType({ properties, items }: JsonObject): string | undefined {
  if (properties) return 'object';
  return items ? 'array' : undefined;
}

/**
 * Divides a schema of several types into one schema for each type. Each keyword is part of exactly one schema: otherwise
 * the result would be several times as long for each level of a nested schema.
 */
function divideByType(types: ReadonlySet<unknown>, keywords: JsonObject): JsonObject {
  const remaining = new Map(Object.entries(keywords));
  const anyOf = [...types].map((type) => {
    const names = (KEYWORDS_BY_TYPE.get(type) ?? []).filter((name) => remaining.has(name));
    const entries = names.map((name) => [name, remaining.get(name)] as const);
    for (const name of names) remaining.delete(name);
    return { type, ...Object.fromEntries(entries) };
  });
  return { ...Object.fromEntries(remaining), anyOf };
}
