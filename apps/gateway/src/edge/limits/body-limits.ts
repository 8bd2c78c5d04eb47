/**
 * Limits of everything in a request but its content: names, ids, roles, tags. They are checked before anything looks
 * into it, so that no request makes us look up a name of 24 MB. What a model reads is only limited with the whole body.
 */
import { isWithinJsonLimits, MAX_JSON_PARTS } from '#application';
import { BadRequestError } from '../errors/errors.ts';

/** Nesting of objects and lists. */
const MAX_DEPTH = 64;
/** Elements of all lists of a body. The longest legitimate one is the input of embeddings: 300,000 tokens as numbers. */
const MAX_ELEMENTS = 500_000;
/** Fields of all objects of a body. A conversation has a few in each of its parts; every new name costs us time. */
const MAX_FIELDS = 100_000;
const MAX_FIELD_NAME = 256;
/** For fields without a limit of their own. */
const MAX_TEXT = 4_096;
const MAX_NAME = 256;
/** Of calls of tools: some clients keep in them what a vendor wants back with the call, such as the signature of a thought. */
const MAX_CALL_ID = 32_768;

/** Names and ids, by the fields that carry them. */
const NAME_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'models',
  'role',
  'type',
  'name',
  'item_id',
  'file_id',
  'previous_response_id',
  'credit_id',
  'currency',
]);

const CALL_ID_FIELDS: ReadonlySet<string> = new Set(['id', 'call_id', 'tool_call_id']);

/** Content: what a model reads or has generated, by the fields that carry it. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set([
  'arguments',
  'code',
  'content',
  'data',
  'definition',
  'description',
  'encrypted_content',
  'file_data',
  'file_url',
  'image_url',
  'input',
  'instructions',
  'output',
  'prompt',
  'query',
  'reasoning',
  'reasoning_content',
  'refusal',
  'result',
  'signature',
  'summary',
  'text',
  'thinking',
  'transcript',
  'url',
]);

/** Fields below which everything is content: JSON Schemas, and the arguments of calls. */
const NESTED_CONTENT_FIELDS: ReadonlySet<string> = new Set(['arguments', 'input_schema', 'parameters', 'schema']);

/** @throws BadRequestError for JSON with more objects, lists and fields than a body may have, before it is parsed */
export function assertJsonWithinLimits(json: string): void {
  if (!isWithinJsonLimits(json)) throw createTooManyError('objects, lists and fields', MAX_JSON_PARTS);
}

/** @throws BadRequestError that names the field */
export function assertBodyWithinLimits(body: unknown): void {
  if (typeof body === 'object' && body !== null) new BodyLimitChecker().check(body, '', 1, false);
}

/** Checks parts of an address: one of them, or all parameters of a query. */
export function assertShortParameters(value: unknown, name: string): void {
  if (typeof value === 'string' && value.length > MAX_NAME) throw createTooLongError(name, MAX_NAME);
  if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) assertShortParameters(child, key);
  }
}

class BodyLimitChecker {
  private elements = 0;
  private fields = 0;

  check(value: object, field: string, depth: number, isInsideContent: boolean): void {
    if (depth > MAX_DEPTH) throw new BadRequestError(`The body must not be nested deeper than ${MAX_DEPTH} levels`);
    if (Array.isArray(value)) {
      this.elements += value.length;
      if (this.elements > MAX_ELEMENTS) throw createTooManyError('elements of lists', MAX_ELEMENTS);
      for (const element of value) this.checkValue(element, field, depth, isInsideContent);
    } else {
      for (const name in value) {
        if (++this.fields > MAX_FIELDS) throw createTooManyError('fields', MAX_FIELDS);
        if (name.length > MAX_FIELD_NAME)
          throw new BadRequestError(`Names of fields must have at most ${MAX_FIELD_NAME} characters`);
        const child = (value as Record<string, unknown>)[name];
        this.checkValue(child, name, depth, isInsideContent || isContent(child, name));
      }
    }
  }

  private checkValue(value: unknown, field: string, depth: number, isInsideContent: boolean): void {
    if (typeof value === 'object' && value !== null) {
      this.check(value, field, depth + 1, isInsideContent);
    } else if (typeof value === 'string' && value.length > MAX_NAME && !isInsideContent && !CONTENT_FIELDS.has(field)) {
      const maxLength = getMaxLength(field);
      if (value.length > maxLength) throw createTooLongError(field, maxLength);
    }
  }
}

/** The input of a call is an object, that of a request text or a list. */
function isContent(value: unknown, field: string): boolean {
  return (
    typeof value === 'object' && (NESTED_CONTENT_FIELDS.has(field) || (field === 'input' && !Array.isArray(value)))
  );
}

function getMaxLength(field: string): number {
  if (NAME_FIELDS.has(field)) return MAX_NAME;
  return CALL_ID_FIELDS.has(field) ? MAX_CALL_ID : MAX_TEXT;
}

function createTooManyError(what: string, max: number): BadRequestError {
  return new BadRequestError(`The body must have at most ${max} ${what}`);
}

function createTooLongError(name: string, max: number): BadRequestError {
  return new BadRequestError(`${name} must have at most ${max} characters`, name);
}
