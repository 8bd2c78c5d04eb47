/** Tools that a request offers: which one is called, and with what. */
import { misunderstood } from './directive.ts';

export interface Tool {
  readonly name: string;
  /** JSON schema of its arguments. */
  readonly schema: unknown;
  /** The provider executes it by itself, so often at most. */
  readonly ownUses?: number;
}

export interface Toolbox {
  readonly tools: readonly Tool[];
  /** What the request says: `auto` leaves it to the model, `required` wants any, an object that one. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string };
  /** How often tools were called and answered since the user last spoke. */
  readonly rounds: number;
}

/** @throws MisunderstoodDirective when the directive wants a tool that was not offered */
export function chosenTool(
  { tools, choice, rounds }: Toolbox,
  wanted: string | undefined,
  times = 1,
): Tool | undefined {
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  const given = wanted === undefined || wanted === 'any' ? tools[0] : tools.find(({ name }) => name === wanted);
  // What was called before may have been taken away since.
  if (choice === 'auto' && rounds > 0 && !given) return undefined;
  if (choice === 'none' || (choice === 'auto' && (wanted === undefined || rounds >= times))) return undefined;
  if (!given) throw misunderstood(`the request has no tool "${wanted}"`);
  return given;
}

/** Arguments that the tool's schema allows: no more than it requires. */
export function argumentsFor({ schema }: Tool): string {
  return JSON.stringify(sample(schema, schema));
}

interface Schema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly anyOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly allOf?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly items?: unknown;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
}

/** Deeper than any schema that can be fulfilled goes: one that requires itself has no end. */
const DEEPEST = 32;

function sample(given: unknown, root: unknown, depth = 0): unknown {
  const schema = (typeof given === 'object' && given !== null ? given : {}) as Schema;
  if (depth > DEEPEST) return null;
  const next = (each: unknown) => sample(each, root, depth + 1);
  if (schema.$ref !== undefined) return next(resolve(schema.$ref, root));
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return next(either[0]);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(next));
  switch (typeOf(schema)) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, next(schema.properties?.[name])]));
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => next(schema.items));
    case 'integer':
    case 'number':
      return numberFor(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return textFor(schema);
  }
}

function typeOf({ type, properties }: Schema): string | undefined {
  if (properties) return 'object';
  return typeof type === 'string' || type === undefined ? type : type[0];
}

/** @param ref a path within the schema: `#/$defs/name` */
function resolve(ref: string, root: unknown): unknown {
  const step = (at: unknown, name: string) => (at as Readonly<Record<string, unknown>> | undefined)?.[name];
  return ref.split('/').slice(1).reduce(step, root);
}

function numberFor({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Schema): number {
  const least = minimum ?? (exclusiveMinimum === undefined ? Number.NEGATIVE_INFINITY : exclusiveMinimum + 1);
  const most = maximum ?? (exclusiveMaximum === undefined ? Number.POSITIVE_INFINITY : exclusiveMaximum - 1);
  return Math.min(Math.max(1, least), most);
}

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '0b6e4a2c-1d3f-4c5a-8b7e-9f0a1b2c3d4e',
};

function textFor({ format = '', minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema): string {
  return (FORMATS[format] ?? 'text'.padEnd(minLength, '.')).slice(0, maxLength);
}
