import { MAX_KEY_NAME_LENGTH } from '#domain';
import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { array, instant, nullable, object, text, usd } from '../openapi/schemas.ts';
import { MAX_KEY_PAGE_SIZE } from './keys.requests.ts';

export const KeySchema = nameSchema(
  'Key',
  object(
    {
      _id: text('The id of the key'),
      name: text('The name of the key', { minLength: 1, maxLength: MAX_KEY_NAME_LENGTH }),
      api_key: text('The secret of the key. Returned on creation, and with show_key', { pattern: '^sk-' }),
      usage_limit_usd: nullable(usd('Spending limit per period, or in total')),
      current_period_usage_usd: usd('Spent in the current period'),
      total_usage_all_time_usd: usd('Spent in total'),
      reset_period: { type: ['string', 'null'], enum: ['daily', 'weekly', 'monthly', null] },
      reset_at: nullable(instant('When the next period starts')),
      expire_at: nullable(instant('When the key expires')),
      models: nullable(array(text('The id of a model or a data lookup, or a pattern'))),
      blocked: { type: 'boolean', description: 'Whether all requests with the key are rejected' },
      metadata: { type: 'object', additionalProperties: { type: 'string' }, description: 'Tags' },
      dedupe_seconds: {
        type: ['integer', 'null'],
        description: 'How long identical requests are the same request while its response is running or unread',
      },
      created_at: instant('When the key was created'),
      updated_at: instant('When the key was last changed'),
      deleted_at: nullable(instant('When the key was revoked')),
    },
    ['api_key'],
  ),
);

const STATUS: JsonSchema = { const: 'success' };

export const KeyResponseSchema = nameSchema('KeyAnswer', object({ status: STATUS, data: KeySchema }));
export const KeyList = nameSchema(
  'KeyList',
  object({
    status: STATUS,
    data: array(KeySchema),
    pagination: object({
      page: { type: 'integer', minimum: 1 },
      page_count: { type: 'integer', minimum: 1, maximum: MAX_KEY_PAGE_SIZE, description: 'Keys per page' },
      total: { type: 'integer', minimum: 0, description: 'The number of keys on all pages' },
      total_pages: { type: 'integer', minimum: 0 },
    }),
  }),
);
export const KeyRevokedSchema = nameSchema('KeyRevoked', object({ status: STATUS, message: text('A confirmation') }));
