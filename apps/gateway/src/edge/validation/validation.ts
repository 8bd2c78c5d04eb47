/** Validates request parameters and bodies, and defines the validation rules of DTO classes. */
import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import {
  getMetadataStorage,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  Max,
  Min,
  MinLength,
  ValidateBy,
  type ValidationError,
  validateSync,
} from 'class-validator';
import { createRequestSchema, Field } from '../../openapi/request-schema.ts';
import { BOOLEAN } from '../../openapi/schemas.ts';
import { BadRequestError } from '../errors/errors.ts';
import { assertBodyWithinLimits, assertShortParameters } from '../limits/body-limits.ts';
import { Upload, type UploadFields } from '../uploads/upload.ts';
import { assertMatchesSchemas, hasSchemaRules } from './matches-schema.ts';
import { addFirstModel } from './model-list.ts';
import { assertFieldsAccepted, hasFieldRule } from './unknown-fields.ts';

/**
 * Validates what a controller receives from the body, the query or the path: first its size, then the rules if its type
 * is a class with rules.
 */
export class ValidationPipe implements PipeTransform {
  private readonly rulePresence = new WeakMap<object, boolean>();

  transform(sent: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if (type === 'custom') return sent;
    const value = sent instanceof Upload ? coerceFields(sent.fields, metatype) : sent;
    if (type !== 'body') assertShortParameters(value, data ?? '');
    else if (sent instanceof Upload) assertBodyWithinLimits(value); // JSON was checked when it was parsed
    if (metatype === undefined || !this.hasRules(metatype)) return value;
    return validateDto(metatype, type === 'body' ? addFirstModel(flattenModelId(value), metatype) : value);
  }

  private hasRules(type: new () => object): boolean {
    let isRuled = this.rulePresence.get(type);
    if (isRuled === undefined) {
      const validationRules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
      isRuled = validationRules.length > 0 || hasSchemaRules(type) || hasFieldRule(type);
      this.rulePresence.set(type, isRuled);
    }
    return isRuled;
  }
}

const fieldTypesByDto = new WeakMap<object, ReadonlyMap<string, unknown>>();

/** Converts the texts of a form to the numbers and booleans that the class requires. Other texts stay as they are. */
function coerceFields(fields: UploadFields, metatype: (new () => object) | undefined): unknown {
  if (metatype === undefined) return fields;
  const fieldTypes = fieldTypesByDto.get(metatype) ?? getFieldTypes(metatype);
  fieldTypesByDto.set(metatype, fieldTypes);
  return Object.fromEntries(
    Object.entries(fields).map(([name, text]) => [name, coerceValue(text, fieldTypes.get(name))]),
  );
}

function getFieldTypes(metatype: new () => object): ReadonlyMap<string, unknown> {
  const { properties } = createRequestSchema(metatype);
  return new Map(Object.entries(properties as object).map(([name, { type }]) => [name, [type].flat()[0]]));
}

function coerceValue(text: string | readonly string[], type: unknown): unknown {
  if (typeof text !== 'string') return text;
  if ((type === 'integer' || type === 'number') && NUMBER.test(text)) return Number(text);
  return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Replaces a model object with its id, because some clients send an object. Other bodies stay as they are. */
function flattenModelId(body: unknown): unknown {
  const { model } = (body ?? {}) as { readonly model?: unknown };
  if (typeof model !== 'object' || model === null) return body;
  const { id } = model as { readonly id?: unknown };
  return typeof id === 'string' ? { ...(body as object), model: id } : body;
}

/**
 * Validates a body or query: its fields by the rules of class-validator, and their content by JSON schemas. Unknown
 * fields are accepted, unless the class rejects them (`unknown-fields.ts`).
 * @param value null and undefined count as an object without fields
 * @throws BadRequestError for the first invalid field, or if the value is an array or not an object
 */
export function validateDto<T extends object>(type: new () => T, value: unknown): T {
  if (typeof (value ?? {}) !== 'object' || Array.isArray(value))
    throw new BadRequestError('The body must be a JSON object');
  assertFieldsAccepted(type, value ?? {});
  const checked = assignFields(new type(), value ?? {});
  // class-validator finds the rules of an object by its `constructor`, and a body may have a field with that name.
  if (Object.hasOwn(checked, 'constructor')) Reflect.deleteProperty(checked, 'constructor');
  // A class may have no rules of class-validator, but only schemas or rules for unknown fields.
  const [error] = validateSync(checked, { stopAtFirstError: true, forbidUnknownValues: false });
  if (error) throw new BadRequestError(getMessage(error), error.property);
  assertMatchesSchemas(checked);
  return checked;
}

/** Assigning a field named `__proto__` would replace the prototype, so such fields are defined instead. */
function assignFields<T extends object>(object: T, fields: object): T {
  if (!Object.hasOwn(fields, '__proto__')) return Object.assign(object, fields);
  return Object.defineProperties(object, Object.getOwnPropertyDescriptors(fields));
}

function getMessage({ constraints, property }: ValidationError): string {
  return Object.values(constraints ?? {})[0] ?? `${property} is invalid`;
}

/** Whether a text can be stored: PostgreSQL rejects NUL, and UTF-8 cannot encode half of a surrogate pair. */
export function isStorableText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

export function IsModelId(description: string): PropertyDecorator {
  return (prototype, field) => {
    Field({ description })(prototype, field);
    MinLength(1, { message: 'model must be a non-empty string' })(prototype, field);
    IsString({ message: 'model must be a string' })(prototype, field);
  };
}

/** Adds a rule that class-validator cannot express. */
export function Satisfies(rule: (value: unknown) => boolean, message: string): PropertyDecorator {
  return ValidateBy({ name: message, validator: { validate: rule, defaultMessage: () => message } });
}

const FLAGS: ReadonlySet<unknown> = new Set(['true', 'false', '1', '0']);

/** A boolean in the query, in the spellings that clients use. */
export function IsBooleanFlag(description: string): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    Field({ ...BOOLEAN, description })(prototype, field);
    IsOptional()(prototype, field);
    const isFlag = (value: unknown) => typeof value === 'string' && FLAGS.has(value.toLowerCase());
    Satisfies(isFlag, `${name} must be true, false, 1 or 0`)(prototype, field);
  };
}

/** Whether a validated flag is set. */
export function isTrue(flag: string | undefined): boolean {
  return flag !== undefined && ['true', '1'].includes(flag.toLowerCase());
}

/** An integer from 1, optionally with a maximum. */
export function IsPositiveInteger(max?: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    IsInt({ message: `${name} must be an integer` })(prototype, name);
    if (max !== undefined) Max(max, { message: `${name} must be at most ${max}` })(prototype, name);
    Min(1, { message: `${name} must be at least 1` })(prototype, name);
  };
}

/** A number from `min` to `max`, both inclusive. */
export function IsNumberBetween(min: number, max: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    const range = `${name} must be from ${min} to ${max}`;
    IsNumber({}, { message: `${name} must be a number` })(prototype, name);
    Max(max, { message: range })(prototype, name);
    Min(min, { message: range })(prototype, name);
  };
}
