/** How what a request carries is checked, and the rules that its classes are made of. */
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
import { createFastValidator, type FastValidator } from './fast-validator.ts';
import { assertMatchesSchemas, hasSchemaRules } from './matches-schema.ts';

/**
 * Checks what a controller takes from the body, the query or the path: first its size, and then, where its type is a class
 * with rules, these.
 */
export class ValidationPipe implements PipeTransform {
  private readonly rulePresence = new WeakMap<object, boolean>();

  transform(sent: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if (type === 'custom') return sent;
    const value = sent instanceof Upload ? coerceFields(sent.fields, metatype) : sent;
    if (type !== 'body') assertShortParameters(value, data ?? '');
    else if (sent instanceof Upload) assertBodyWithinLimits(value); // JSON was checked as it was read
    if (metatype === undefined || !this.hasRules(metatype)) return value;
    return validateDto(metatype, type === 'body' ? flattenModelId(value) : value);
  }

  private hasRules(type: new () => object): boolean {
    let isRuled = this.rulePresence.get(type);
    if (isRuled === undefined) {
      const validationRules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
      isRuled = validationRules.length > 0 || hasSchemaRules(type);
      this.rulePresence.set(type, isRuled);
    }
    return isRuled;
  }
}

const fieldTypesByDto = new WeakMap<object, ReadonlyMap<string, unknown>>();

/** What a form says as text is a number or a boolean where the class wants one and it is one. */
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

/** Replaces a model object by its id, as some clients send one; other bodies stay as they are. */
function flattenModelId(body: unknown): unknown {
  const { model } = (body ?? {}) as { readonly model?: unknown };
  if (typeof model !== 'object' || model === null) return body;
  const { id } = model as { readonly id?: unknown };
  return typeof id === 'string' ? { ...(body as object), model: id } : body;
}

/**
 * Checks a body or query against a class: its own fields by class-validator's rules, and what they contain by their shapes.
 * Unknown fields are let through.
 * @throws BadRequestError that names the first field that is wrong
 */
export function validateDto<T extends object>(type: new () => T, value: unknown): T {
  if (typeof (value ?? {}) !== 'object' || Array.isArray(value))
    throw new BadRequestError('The body must be a JSON object');
  const checked = assignFields(new type(), value ?? {});
  // class-validator finds the rules of an object by its `constructor`, and a body may have a field of that name.
  if (Object.hasOwn(checked, 'constructor')) Reflect.deleteProperty(checked, 'constructor');
  if (!passesFastValidation(type, checked)) {
    const [error] = validateSync(checked, { stopAtFirstError: true });
    if (error) throw new BadRequestError(getMessage(error), error.property);
  }
  assertMatchesSchemas(checked);
  return checked;
}

const fastValidators = new WeakMap<object, FastValidator | undefined>();

function passesFastValidation(type: new () => object, checked: object): boolean {
  if (!fastValidators.has(type)) fastValidators.set(type, createFastValidator(type));
  return fastValidators.get(type)?.(checked) === true;
}

/** A field that is called `__proto__` cannot be assigned. */
function assignFields<T extends object>(object: T, fields: object): T {
  if (!Object.hasOwn(fields, '__proto__')) return Object.assign(object, fields);
  return Object.defineProperties(object, Object.getOwnPropertyDescriptors(fields));
}

function getMessage({ constraints, property }: ValidationError): string {
  return Object.values(constraints ?? {})[0] ?? `${property} is invalid`;
}

/** Text that can be stored: PostgreSQL accepts no NUL, and half of a surrogate pair is no character. */
export function isStorableText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

/** The id of a model. */
export function IsModelId(description: string): PropertyDecorator {
  return (prototype, field) => {
    Field({ description })(prototype, field);
    MinLength(1, { message: 'model must be a non-empty string' })(prototype, field);
    IsString({ message: 'model must be a string' })(prototype, field);
  };
}

/** A custom rule, for what class-validator cannot express. */
export function Satisfies(rule: (value: unknown) => boolean, message: string): PropertyDecorator {
  return ValidateBy({ name: message, validator: { validate: rule, defaultMessage: () => message } });
}

const FLAGS: ReadonlySet<unknown> = new Set(['true', 'false', '1', '0']);

/** A boolean of a query, in the words that clients have for it. */
export function IsBooleanFlag(description: string): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    Field({ ...BOOLEAN, description })(prototype, field);
    IsOptional()(prototype, field);
    const isFlag = (value: unknown) => typeof value === 'string' && FLAGS.has(value.toLowerCase());
    Satisfies(isFlag, `${name} must be true, false, 1 or 0`)(prototype, field);
  };
}

/** Whether a flag that was checked is set. */
export function isTrue(flag: string | undefined): boolean {
  return flag !== undefined && ['true', '1'].includes(flag.toLowerCase());
}

/** A whole number from 1, which may have a largest. */
export function IsPositiveInteger(max?: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    IsInt({ message: `${name} must be a whole number` })(prototype, name);
    if (max !== undefined) Max(max, { message: `${name} must be at most ${max}` })(prototype, name);
    Min(1, { message: `${name} must be at least 1` })(prototype, name);
  };
}

/** A number from `min` to `max`, both included. */
export function IsNumberBetween(min: number, max: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    const range = `${name} must be from ${min} to ${max}`;
    IsNumber({}, { message: `${name} must be a number` })(prototype, name);
    Max(max, { message: range })(prototype, name);
    Min(min, { message: range })(prototype, name);
  };
}
