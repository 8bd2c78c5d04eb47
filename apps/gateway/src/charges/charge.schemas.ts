import { nameSchema } from '../openapi/operation.ts';
import { instant, nullable, object, text, usd } from '../openapi/schemas.ts';

const STATES = ['paid', 'running', 'used', 'exhausted', 'lapsed', 'forfeited'];

export const ChargeSchema = nameSchema(
  'Charge',
  object({
    status: { const: 'success' },
    data: object({
      challenge_id: text('The id of the challenge', { pattern: '^[\\w-]{43}$' }),
      payment_hash: text('The payment hash', { pattern: '^[0-9a-f]{64}$' }),
      state: text(
        '`paid`: the request can be sent; `running`: the request is being served; `used`: the request was served; `exhausted`: the request is no longer served, because it was attempted too often or its attempts cost the operator too much; `lapsed`: the request was not served in time; `forfeited`: the unused amount is forfeited permanently',
        { enum: STATES },
      ),
      query_type: text('The type of the request that the payment is for'),
      model: text('The model or data lookup of the request'),
      amount_sats: { type: 'integer', minimum: 1, description: 'The price in satoshis' },
      price_usd: usd('The price of the request'),
      charged_usd: usd('The amount that was charged'),
      held_usd: usd('The amount that is held for the running request'),
      left_usd: usd('The amount that is unused and owed to you'),
      forfeited_usd: usd('The unused amount that is forfeited'),
      usable_until: instant('Until when the request can be sent'),
      issued_at: instant('When the payment was requested'),
      paid_at: nullable(instant('When the payment was recorded; null until the request is sent with the proof')),
    }),
  }),
);
