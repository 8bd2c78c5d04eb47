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
import { Field, requestSchema } from '../../openapi/request-schema.ts';
import { BOOLEAN } from '../../openapi/schemas.ts';
import { BadRequestError } from '../errors/errors.ts';
import { assertBodyWithinLimits, assertShortParameters } from '../limits/body-limits.ts';
import { Upload, type UploadFields } from '../uploads/upload.ts';
import { createFastValidator, type FastValidator } from './fast-validator.ts';
import { assertMatchesSchemas, hasSchemaRules } from './schema-rules.ts';

/**
 * Checks what a controller takes from the body, the query or the path: first its size, and then, where its type is a class
 * with rules, these.
 */
export class ValidationPipe implements PipeTransform {
  private readonly ruled = new WeakMap<object, boolean>();

  transform(sent: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if (type === 'custom') return sent;
    const value = sent instanceof Upload ? asTyped(sent.fields, metatype) : sent;
    if (type !== 'body') assertShortParameters(value, data ?? '');
    else if (sent instanceof Upload) assertBodyWithinLimits(value); // JSON was checked as it was read
    if (metatype === undefined || !this.hasRules(metatype)) return value;
    return validateDto(metatype, type === 'body' ? withModelId(value) : value);
  }

  private hasRules(type: new () => object): boolean {
    let ruled = this.ruled.get(type);
    if (ruled === undefined) {
      const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
      ruled = rules.length > 0 || hasSchemaRules(type);
      this.ruled.set(type, ruled);
    }
    return ruled;
  }
}

const types = new WeakMap<object, ReadonlyMap<string, unknown>>();

/** What a form says as text is a number or a boolean where the class wants one and it is one. */
function asTyped(fields: UploadFields, metatype: (new () => object) | undefined): unknown {
  if (metatype === undefined) return fields;
  const known = types.get(metatype) ?? typesOf(metatype);
  types.set(metatype, known);
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, typed(text, known.get(name))]));
}

function typesOf(metatype: new () => object): ReadonlyMap<string, unknown> {
  const { properties } = requestSchema(metatype);
  return new Map(Object.entries(properties as object).map(([name, { type }]) => [name, [type].flat()[0]]));
}

function typed(text: string | readonly string[], type: unknown): unknown {
  if (typeof text !== 'string') return text;
  if ((type === 'integer' || type === 'number') && NUMBER.test(text)) return Number(text);
  return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Replaces a model object by its id, as some clients send one; other bodies stay as they are. */
function withModelId(body: unknown): unknown {
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
  const checked = withFields(new type(), value ?? {});
  // class-validator finds the rules of an object by its `constructor`, and a body may have a field of that name.
  if (Object.hasOwn(checked, 'constructor')) Reflect.deleteProperty(checked, 'constructor');
  if (!seemsRight(type, checked)) {
    const [error] = validateSync(checked, { stopAtFirstError: true });
    if (error) throw new BadRequestError(messageOf(error), error.property);
  }
  assertMatchesSchemas(checked);
  return checked;
}

const looks = new WeakMap<object, FastValidator | undefined>();

function seemsRight(type: new () => object, checked: object): boolean {
  if (!looks.has(type)) looks.set(type, createFastValidator(type));
  return looks.get(type)?.(checked) === true;
}

/** A field that is called `__proto__` cannot be assigned. */
function withFields<T extends object>(object: T, fields: object): T {
  if (!Object.hasOwn(fields, '__proto__')) return Object.assign(object, fields);
  return Object.defineProperties(object, Object.getOwnPropertyDescriptors(fields));
}

function messageOf({ constraints, property }: ValidationError): string {
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
export function IsPositiveInteger(most?: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    IsInt({ message: `${name} must be a whole number` })(prototype, name);
    if (most !== undefined) Max(most, { message: `${name} must be at most ${most}` })(prototype, name);
    Min(1, { message: `${name} must be at least 1` })(prototype, name);
  };
}

/** A number from `least` to `most`, both included. */
export function IsNumberBetween(least: number, most: number): PropertyDecorator {
  return (prototype, field) => {
    const name = String(field);
    const range = `${name} must be from ${least} to ${most}`;
    IsNumber({}, { message: `${name} must be a number` })(prototype, name);
    Max(most, { message: range })(prototype, name);
    Min(least, { message: range })(prototype, name);
  };
}
