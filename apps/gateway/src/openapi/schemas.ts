/** Building blocks of schemas. */
import { toAnthropicErrorType } from '../edge/errors/error-formats.ts';
import { ERROR_DEFINITIONS } from '../edge/errors/errors.ts';
import { type JsonSchema, nameSchema } from './operation.ts';

/** An object with these fields, all of which are there except the optional ones. Further fields may come later. */
export function object(properties: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
}

/** What comes from elsewhere may have more fields than are named here. */
export const withExtraFields = (schema: JsonSchema): JsonSchema => ({ ...schema, additionalProperties: true });

export function array(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}

/** Text, with its meaning. */
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

/** An amount of USD that cannot be negative. */
export function usd(description: string): JsonSchema {
  return { type: 'number', minimum: 0, description: `${description}, in USD: a plain decimal, never an exponent` };
}

export function instant(description: string): JsonSchema {
  return { type: 'string', format: 'date-time', description };
}

export function seconds(description: string): JsonSchema {
  return { type: 'integer', description: `${description}, in Unix seconds` };
}

/** A field of a request that takes a date, with or without a time. */
export function dateOrTime(description: string): JsonSchema {
  return { type: 'string', description: `${description}: ISO 8601, in UTC unless it names a time zone` };
}

export const CREDIT_ID = text('The credit_id of the account, instead of a credential in a header', { format: 'uuid' });

const ERROR: Readonly<Record<string, JsonSchema>> = {
  status: { const: 'error' },
  statusCode: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status' },
  message: text('What went wrong, for people', { minLength: 1 }),
  error: object(
    {
      message: text('The same message, where OpenAI’s clients look for it', { minLength: 1 }),
      type: text('What went wrong, for programs', { enum: [...new Set(ERROR_DEFINITIONS.map(([, type]) => type))] }),
      code: {
        type: ['string', 'integer'],
        description: 'What went wrong, in OpenAI’s words; for `@openrouter/sdk` the HTTP status',
      },
      param: { type: ['string', 'null'], description: 'The field that is wrong, where it is one' },
      metadata: {
        ...object({ error_type: text('OpenRouter’s word for the kind of error', { pattern: '^[a-z_]+$' }) }),
        additionalProperties: STRING,
      },
    },
    ['param'],
  ),
};

export const ErrorSchema = nameSchema('Error', object(ERROR));

/** Of 402 where the request can be paid for by itself: an account that has too little is told nothing of it. */
const PAYMENT: Readonly<Record<string, JsonSchema>> = {
  type: text('What was wrong with the proof of payment, or that there is none (RFC 9457)', { format: 'uri' }),
  title: text('The same, for people'),
  detail: text('What to do'),
  challengeId: text('The id of what is to be paid for', { pattern: '^[\\w-]{43}$' }),
  invoice: text('What to pay: a Lightning invoice (BOLT 11)'),
  payment_hash: text('Its payment hash', { pattern: '^[0-9a-f]{64}$' }),
  amount_sats: { type: 'integer', minimum: 1, description: 'Its amount in satoshis' },
  expires_at: instant('When it expires'),
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
      type: text('What went wrong, in Anthropic’s words', {
        enum: [...new Set(ERROR_DEFINITIONS.map(([status, type]) => toAnthropicErrorType({ status, type })))],
      }),
      message: text('What went wrong, for people', { minLength: 1 }),
      details: {
        ...object({ error_code: text('What went wrong, in the words of the other operations') }),
        additionalProperties: STRING,
      },
    }),
    request_id: STRING,
  }),
);
