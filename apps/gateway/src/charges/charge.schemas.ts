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
        '`paid`: its request can be made; `running`: it is being served; `used`: it was served; `exhausted`: it was tried too often, and cannot be served; `lapsed`: it was not made in time; `forfeited`: what was left of it is kept for good',
        { enum: STATES },
      ),
      query_type: text('The kind of request that it pays for'),
      model: text('The model or lookup that was asked for'),
      amount_sats: { type: 'integer', minimum: 1, description: 'What was paid, in satoshis' },
      price_usd: usd('The price that it was asked for'),
      charged_usd: usd('What was charged'),
      held_usd: usd('What is held for the request that runs'),
      left_usd: usd('What is left of it, and owed to you'),
      forfeited_usd: usd('What was left and is kept'),
      usable_until: instant('Until when the request can be made'),
      issued_at: instant('When the payment was asked for'),
      paid_at: nullable(instant('When it was known to be paid; null before its proof was shown with the request')),
    }),
  }),
);
