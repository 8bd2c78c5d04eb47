import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { BOOLEAN, COUNT, instant, nullable, object, text, usd } from '../openapi/schemas.ts';

const STATES = ['disconnected', 'idle', 'topping_up', 'paused', 'waiting'];

const fields: Readonly<Record<string, JsonSchema>> = {
  connected: BOOLEAN,
  enabled: BOOLEAN,
  nwc_url: nullable(text('The connection string of the wallet, without its secret', { pattern: 'secret=\\*\\*\\*$' })),
  threshold_usd: nullable(usd('The account is topped up when its balance falls below it')),
  topup_amount_usd: nullable(usd('What the wallet is asked for each time')),
  state: text('What it is at: `waiting` after a failure until it tries again', { enum: STATES }),
  paused_until: nullable(instant('When it tries again by itself')),
  last_topup_at: nullable(instant('When the last automatic top-up was credited')),
  last_error: nullable(text('What went wrong last, for people')),
  last_error_code: nullable(text('The same for programs, such as QUOTA_EXCEEDED')),
  last_error_at: nullable(instant('When it went wrong')),
  last_attempt: {
    oneOf: [
      object({
        invoice_id: text('The top-up: its status is under /topup/status'),
        amount_usd: usd('What the wallet is asked for'),
        state: text('How far it is', { enum: ['begun', 'invoiced', 'asked', 'paid', 'expired', 'failed', 'dropped'] }),
        requests: { ...COUNT, description: 'How often the wallet was asked to pay the invoice, which it can pay once' },
        started_at: instant('When it began'),
        ended_at: nullable(instant('When it ended')),
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
    data: { oneOf: [AutoTopupFields, { type: 'null' }], description: 'The same; null where no wallet is connected' },
  }),
);

export const WalletDisconnectedSchema = nameSchema(
  'WalletDisconnected',
  object({ status: { const: 'success' }, message: text('A confirmation') }),
);
