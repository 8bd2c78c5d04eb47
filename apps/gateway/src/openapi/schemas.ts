/** Building blocks of schemas. */
import { toAnthropicErrorType } from '../edge/errors/error-formats.ts';
import { ERROR_DEFINITIONS } from '../edge/errors/errors.ts';
import { type JsonSchema, nameSchema } from './operation.ts';

/**
 * An object whose properties are required except for the `optional` ones. It may get further properties in the future.
 */
export function object(properties: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
}

/** For objects of third parties, which may have more fields than described. */
export const withExtraFields = (schema: JsonSchema): JsonSchema => ({ ...schema, additionalProperties: true });

export function array(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}

export function text(description: string, extra: JsonSchema = {}): JsonSchema {
  return { type: 'string', description, ...extra };
}

export function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  return { ...schema, type: [type, 'null'], ...(Array.isArray(values) ? { enum: [...values, null] } : {}) };
}

export const STRING: JsonSchema = { type: 'string' };
export const BOOLEAN: JsonSchema = { type: 'boolean' };
export const COUNT: JsonSchema = { type: 'integer', minimum: 0 };

/** An amount in USD that cannot be negative. */
export function usd(description: string): JsonSchema {
  return { type: 'number', minimum: 0, description: `${description}, in USD: a plain decimal without exponent` };
}

export function instant(description: string): JsonSchema {
  return { type: 'string', format: 'date-time', description };
}

export function seconds(description: string): JsonSchema {
  return { type: 'integer', description: `${description}, in Unix seconds` };
}

/** A request field with a date or a date and time. */
export function dateOrTime(description: string): JsonSchema {
  return { type: 'string', description: `${description}: ISO 8601, UTC unless a time zone is specified` };
}

export const CREDIT_ID = text('The credit_id of the account, if no credential is sent in a header', { format: 'uuid' });

const ERROR: Readonly<Record<string, JsonSchema>> = {
  status: { const: 'error' },
  statusCode: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status' },
  message: text('A description of the error', { minLength: 1 }),
  error: object(
    {
      message: text('Same as message, for OpenAI’s clients', { minLength: 1 }),
      type: text('The type of the error', { enum: [...new Set(ERROR_DEFINITIONS.map(([, type]) => type))] }),
      code: {
        type: ['string', 'integer'],
        description: 'The error code of OpenAI if it has one, or else the type; for `@openrouter/sdk` the HTTP status',
      },
      param: { type: ['string', 'null'], description: 'The field that caused the error, if there is one' },
      metadata: {
        ...object({ error_type: text('The error type as OpenRouter defines it', { pattern: '^[a-z_]+$' }) }),
        additionalProperties: STRING,
      },
    },
    ['param'],
  ),
};

export const ErrorSchema = nameSchema('Error', object(ERROR));

/**
 * Additional fields of a 402 response that contains a challenge. A 402 for the balance of an account has none of them.
 */
const PAYMENT: Readonly<Record<string, JsonSchema>> = {
  type: text('A URI for the problem with the proof, or for its absence (RFC 9457)', { format: 'uri' }),
  title: text('The problem as text'),
  detail: text('Why the proof was not accepted, or how to pay'),
  challengeId: text('The id of the challenge', { pattern: '^[\\w-]{43}$' }),
  invoice: text('The Lightning invoice to pay (BOLT 11)'),
  payment_hash: text('The payment hash of the invoice', { pattern: '^[0-9a-f]{64}$' }),
  amount_sats: { type: 'integer', minimum: 1, description: 'The amount of the invoice in satoshis' },
  expires_at: instant('When the invoice expires'),
};

export const PaymentRequiredSchema = nameSchema(
  'PaymentWanted',
  object({ ...ERROR, ...PAYMENT }, Object.keys(PAYMENT)),
);

export const AnthropicErrorSchema = nameSchema(
  'AnthropicError',
  object({
    type: { const: 'error' },
    error: object({
      type: text('The error type as Anthropic defines it', {
        enum: [...new Set(ERROR_DEFINITIONS.map(([status, type]) => toAnthropicErrorType({ status, type })))],
      }),
      message: text('A description of the error', { minLength: 1 }),
      details: {
        ...object({ error_code: text('The `code` of the error in the format for OpenAI’s clients') }),
        additionalProperties: STRING,
      },
    }),
    request_id: STRING,
  }),
);

/** Fields that mark a model from 30 days before its end. */
export const RETIREMENT_FIELDS = {
  expiration_date: nullable(
    text('The first UTC day on which it is not served, if that is within 30 days or has come', { format: 'date' }),
  ),
  successor: nullable(text('The id of the model to use instead')),
};
