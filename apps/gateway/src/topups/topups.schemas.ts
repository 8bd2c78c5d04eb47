import { named } from '../openapi/operation.ts';
import { array, nullable, object, STRING, seconds, text } from '../openapi/schemas.ts';

const COINS = { type: 'number', minimum: 0 };
const POSITIVE = { type: 'number', exclusiveMinimum: 0 };
const HEAD = {
  invoice_id: text('The id to query the status with'),
  amount: { ...POSITIVE, description: 'The requested amount' },
  currency: STRING,
  created_at: seconds('When it was created'),
  expires_at: seconds('When it expires'),
};
const INVOICE = text('The invoice to pay (BOLT 11)', { pattern: '^ln' });

export const TopupInvoice = named(
  'TopupInvoice',
  object({
    ...HEAD,
    checkout_url: text('The address of its status', { format: 'uri' }),
    lightning_invoice: INVOICE,
    payment_request: INVOICE,
    crypto_amount_due: { ...POSITIVE, description: 'The amount to pay, in bitcoin' },
  }),
);

export const TopupStatus = named(
  'TopupStatus',
  object({
    ...HEAD,
    status: { enum: ['New', 'Settled', 'Expired'], description: 'Settled: the account was credited' },
    payment_method: STRING,
    amount_paid: { ...COINS, description: 'In bitcoin' },
    amount_due: { ...COINS, description: 'In bitcoin' },
    lightning_invoice: INVOICE,
  }),
);

const METHOD = named(
  'PaymentMethod',
  object({
    method: text('The name to use in the path of a top-up request'),
    display_name: STRING,
    supported_currencies: array(STRING),
    limits: {
      type: 'object',
      description: 'Smallest and largest amount by currency',
      additionalProperties: object({ min: POSITIVE, max: POSITIVE }),
    },
    expiration_minutes: { type: 'integer', minimum: 1 },
    bonus: nullable(text('The bonus on a payment')),
    min_usd: POSITIVE,
    max_usd: POSITIVE,
    currencies: array(STRING),
  }),
);

export const PaymentMethods = named(
  'PaymentMethods',
  object({
    status: { const: 'success' },
    success: { const: true },
    supported_methods: array(METHOD),
    data: { ...array(METHOD), description: 'The same list, where other clients expect it' },
  }),
);
