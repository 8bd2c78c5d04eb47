import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { BOOLEAN, COUNT, instant, nullable, object, text, usd } from '../openapi/schemas.ts';

const STATES = ['disconnected', 'idle', 'topping_up', 'paused', 'waiting'];

const fields: Readonly<Record<string, JsonSchema>> = {
  connected: BOOLEAN,
  enabled: BOOLEAN,
  nwc_url: nullable(text('The connection string of the wallet, without its secret', { pattern: 'secret=\\*\\*\\*$' })),
  threshold_usd: nullable(usd('The balance below which the account is topped up')),
  topup_amount_usd: nullable(usd('The amount of each top-up')),
  state: text('The current state; `waiting`: after a failure, until the next attempt', { enum: STATES }),
  paused_until: nullable(instant('When paused automatic top-up resumes by itself')),
  last_topup_at: nullable(instant('When the last automatic top-up was credited')),
  last_error: nullable(text('The last error as text')),
  last_error_code: nullable(text('The last error as a code, such as QUOTA_EXCEEDED')),
  last_error_at: nullable(instant('When the last error occurred')),
  last_attempt: {
    oneOf: [
      object({
        invoice_id: text('The id of the top-up, for GET /topup/status/{id}'),
        amount_usd: usd('The amount of the invoice'),
        state: text('The state of the attempt', {
          enum: ['begun', 'invoiced', 'asked', 'paid', 'expired', 'failed', 'dropped'],
        }),
        requests: {
          ...COUNT,
          description: 'Payment requests, including those that could not be sent; the invoice can be paid only once',
        },
        started_at: instant('When the attempt started'),
        ended_at: nullable(instant('When the attempt ended')),
      }),
      { type: 'null' },
    ],
  },
  created_at: nullable(instant('When the wallet was connected')),
  updated_at: nullable(instant('When the settings were last changed')),
};

const AutoTopupFields = nameSchema('AutoTopupSettings', object(fields));

export const AutoTopupSchema = nameSchema(
  'AutoTopup',
  object({
    status: { const: 'success' },
    ...fields,
    data: { oneOf: [AutoTopupFields, { type: 'null' }], description: 'The same fields; null without a wallet' },
  }),
);

export const WalletDisconnectedSchema = nameSchema(
  'WalletDisconnected',
  object({ status: { const: 'success' }, message: text('A confirmation') }),
);
