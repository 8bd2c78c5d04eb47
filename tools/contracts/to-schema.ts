/**
 * Converts a TypeScript type to a JSON schema: every object is closed, and what is not in JSON (methods, `undefined`)
 * is left out. Named types become definitions, because types of providers are recursive.
 */
import {
  type Symbol as CheckedSymbol,
  type Checker,
  type LiteralType,
  SignatureKind,
  SymbolFlags,
  type Type,
  TypeFlags,
  type TypeReference,
} from 'typescript/unstable/sync';

export type Schema = { readonly [keyword: string]: unknown };

/** Types of files and streams, which are not in JSON. Any value is valid. */
const BINARY = /^(Blob|File|FileLike|BlobLike|ResponseLike|Buffer|ArrayBuffer|Uint8Array|ReadStream|ReadableStream)$/;

/** How Google's SDK documents fields of its other API, which we do not use. */
const OF_OTHER_API = /not\s+supported in Gemini API/;

/** Types of the language that have names, but do not describe what they contain. */
const UTILITY_TYPES: ReadonlySet<string> = new Set(['Record', 'Omit', 'Pick']);

/** Fields that an SDK adds to what it receives, by type: `output_text` of OpenAI's responses. */
const ADDED_BY_SDK: ReadonlySet<string> = new Set(['Response.output_text']);

export class SchemaConverter {
  /** Definitions by name. */
  readonly definitions = new Map<string, Schema>();
  private readonly names = new Map<number, string>();

  constructor(private readonly checker: Checker) {}

  toSchema(type: Type): Schema {
    const { flags } = type;
    if (flags & (TypeFlags.Any | TypeFlags.Unknown)) return {};
    if (flags & TypeFlags.Null) return { type: 'null' };
    if (type.isLiteralType()) return { const: (type as LiteralType).value };
    if (flags & (TypeFlags.String | TypeFlags.TemplateLiteral)) return { type: 'string' };
    if (flags & TypeFlags.Number) return { type: 'number' };
    if (flags & TypeFlags.Boolean) return { type: 'boolean' };
    if (type.isUnionType()) return this.define(type, () => this.toUnion(type.getTypes()));
    if (type.isIntersectionType()) {
      const text = type.getTypes().find((part) => part.flags & (TypeFlags.String | TypeFlags.Number));
      if (text) return this.toSchema(text); // `string & {}` permits other values than the ones in the union
    }
    if (this.checker.isArrayType(type)) {
      const [element] = this.checker.getTypeArguments(type as TypeReference);
      return element ? { type: 'array', items: this.toSchema(element) } : { type: 'array' };
    }
    if (this.checker.isTupleType(type)) return { type: 'array' };
    if (type.getSymbol()?.name.match(BINARY)) return {};
    if (type.isObjectType() || type.isIntersectionType()) return this.define(type, () => this.toObject(type));
    throw new Error(`no schema for ${this.checker.typeToString(type)}`);
  }

  private toUnion(types: readonly Type[]): Schema {
    const members = types.filter(({ flags }) => !(flags & (TypeFlags.Undefined | TypeFlags.Void)));
    const literals = members.filter((type) => type.isLiteralType()).map((type) => (type as LiteralType).value);
    const otherMembers = members.filter((type) => !type.isLiteralType()).map((type) => this.toSchema(type));
    const isAnyBoolean = literals.includes(true) && literals.includes(false);
    const values = isAnyBoolean ? literals.filter((value) => typeof value !== 'boolean') : literals;
    const isAnyText = otherMembers.some(({ type }) => type === 'string');
    const literalValues = isAnyText ? values.filter((value) => typeof value !== 'string') : values;
    const schemas = [
      ...(literalValues.length > 0
        ? [literalValues.length === 1 ? { const: literalValues[0] } : { enum: literalValues }]
        : []),
      ...(isAnyBoolean ? [{ type: 'boolean' }] : []),
      ...otherMembers,
    ];
    const unique = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
    return unique.length === 1 && unique[0] ? unique[0] : { anyOf: unique };
  }

  private toObject(type: Type): Schema {
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const symbol of this.checker.getPropertiesOfType(type)) {
      const valueType = this.checker.getTypeOfSymbol(symbol);
      if (!valueType || !this.isInJson(symbol, valueType)) continue;
      if (ADDED_BY_SDK.has(`${type.getSymbol()?.name}.${symbol.name}`)) continue;
      properties[symbol.name] = this.toSchema(valueType);
      if (!(symbol.flags & SymbolFlags.Optional) && !isOptional(valueType)) required.push(symbol.name);
    }
    const [index] = this.checker.getIndexInfosOfType(type);
    return {
      type: 'object',
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(required.length > 0 ? { required } : {}),
      additionalProperties: index ? this.toSchema(index.valueType) : false,
    };
  }

  private isInJson(symbol: CheckedSymbol, type: Type): boolean {
    if (symbol.flags & (SymbolFlags.Method | SymbolFlags.Accessor) || symbol.name.startsWith('__')) return false;
    if (type.flags & TypeFlags.Undefined) return false;
    if (OF_OTHER_API.test(this.checker.getDocumentationCommentOfSymbol(symbol))) return false;
    return this.checker.getSignaturesOfType(type, SignatureKind.Call).length === 0;
  }

  /** Returns a reference to the definition of a named type, or the schema of a type without a name. */
  private define(type: Type, convert: () => Schema): Schema {
    const existing = this.names.get(type.id);
    if (existing !== undefined) return toReference(existing);
    const name = this.selectName(type);
    if (name === undefined) return convert();
    this.names.set(type.id, name);
    this.definitions.set(name, {}); // reserves the name while the parts are converted
    this.definitions.set(name, convert());
    return toReference(name);
  }

  private selectName(type: Type): string | undefined {
    const alias = type.getAliasSymbol();
    const symbol = alias ?? (type.isUnionType() ? undefined : type.getSymbol());
    if (!symbol || symbol.name.startsWith('__') || UTILITY_TYPES.has(symbol.name)) return undefined;
    const name = listNames(symbol).join('.');
    if (!this.definitions.has(name)) return name;
    let number = 2;
    while (this.definitions.has(`${name}~${number}`)) number++;
    return `${name}~${number}`;
  }
}

/** Returns the names of the namespaces that contain a type, and its own. */
function listNames(symbol: CheckedSymbol): readonly string[] {
  const parent = symbol.getParent();
  return [...(parent && !parent.name.startsWith('"') ? listNames(parent) : []), symbol.name];
}

function isOptional(type: Type): boolean {
  return type.isUnionType() && type.getTypes().some(({ flags }) => flags & TypeFlags.Undefined);
}

function toReference(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}
