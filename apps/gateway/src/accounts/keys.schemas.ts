import { MAX_KEY_NAME } from '#domain';
import { named, type Schema } from '../openapi/operation.ts';
import { array, instant, nullable, object, text, usd } from '../openapi/schemas.ts';

export const Key = named(
  'Key',
  object(
    {
      _id: text('The id of the key'),
      name: text('What the account calls it', { minLength: 1, maxLength: MAX_KEY_NAME }),
      api_key: text('The secret itself: once when the key is created, and with show_key', { pattern: '^sk-' }),
      usage_limit_usd: nullable(usd('What the key may spend in a period, or in all')),
      current_period_usage_usd: usd('What it has spent in this period'),
      total_usage_all_time_usd: usd('What it has spent in all'),
      reset_period: { type: ['string', 'null'], enum: ['daily', 'weekly', 'monthly', null] },
      reset_at: nullable(instant('When the next period begins')),
      expire_at: nullable(instant('From when on the key is refused')),
      created_at: instant('When it was created'),
      updated_at: instant('When it was changed last'),
      deleted_at: nullable(instant('When it was revoked')),
    },
    ['api_key'],
  ),
);

const STATUS: Schema = { const: 'success' };

export const KeyAnswer = named('KeyAnswer', object({ status: STATUS, data: Key }));
export const KeyList = named('KeyList', object({ status: STATUS, data: array(Key) }));
export const KeyRevoked = named('KeyRevoked', object({ status: STATUS, message: text('That it was revoked') }));
