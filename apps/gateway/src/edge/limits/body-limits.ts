/**
 * Limits of names, ids, roles and tags: of everything in a request except its content. They are checked before the
 * request is interpreted, so that no name of 24 MB is looked up. Only the size of the body limits texts of content.
 */
import { BadRequestError } from '../errors/errors.ts';
import { createTooManyError, MAX_DEPTH, MAX_ELEMENTS, MAX_FIELDS } from './json-scanner.ts';

const MAX_FIELD_NAME = 256;
/** For string fields without a limit of their own. */
const MAX_TEXT = 4_096;
const MAX_NAME = 256;
/**
 * For ids of tool calls: some clients store data in them that a provider requires back, such as the signature of
 * reasoning.
 */
const MAX_CALL_ID = 32_768;

/** Fields that hold names and ids. */
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

/** Fields that hold content: input or output of a model. */
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

/** Fields in which everything is content: JSON Schemas, and the arguments of tool calls. */
const NESTED_CONTENT_FIELDS: ReadonlySet<string> = new Set(['arguments', 'input_schema', 'parameters', 'schema']);

/**
 * @throws BadRequestError if the body is nested too deeply, has too many array elements or fields, or has a name or a
 * text that is too long; the error names the field of such a text
 */
export function assertBodyWithinLimits(body: unknown): void {
  if (typeof body === 'object' && body !== null) new BodyLimitChecker().check(body, '', 1, false);
}

/** Checks a parameter of the URL, or all parameters of a query. @throws BadRequestError that names the parameter */
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
      if (this.elements > MAX_ELEMENTS) throw createTooManyError('array elements', MAX_ELEMENTS);
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

/** The `input` of a tool call is an object; the `input` of a request is a string or an array. */
function isContent(value: unknown, field: string): boolean {
  return (
    typeof value === 'object' && (NESTED_CONTENT_FIELDS.has(field) || (field === 'input' && !Array.isArray(value)))
  );
}

function getMaxLength(field: string): number {
  if (NAME_FIELDS.has(field)) return MAX_NAME;
  return CALL_ID_FIELDS.has(field) ? MAX_CALL_ID : MAX_TEXT;
}

function createTooLongError(name: string, max: number): BadRequestError {
  return new BadRequestError(`${name} must have at most ${max} characters`, name);
}
