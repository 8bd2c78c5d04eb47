import { named } from '../openapi/operation.ts';
import { array, nullable, object, STRING, seconds, text } from '../openapi/schemas.ts';

const COINS = { type: 'number', minimum: 0 };
const POSITIVE = { type: 'number', exclusiveMinimum: 0 };
const HEAD = {
  invoice_id: text('Ask for the status with it'),
  amount: { ...POSITIVE, description: 'As it was sent' },
  currency: STRING,
  created_at: seconds('When it was made'),
  expires_at: seconds('Until when it can be paid'),
};
const INVOICE = text('The invoice to pay (BOLT 11)', { pattern: '^ln' });

export const TopupInvoice = named(
  'TopupInvoice',
  object({
    ...HEAD,
    checkout_url: text('Where its status is', { format: 'uri' }),
    lightning_invoice: INVOICE,
    payment_request: INVOICE,
    crypto_amount_due: { ...POSITIVE, description: 'What to pay, in whole bitcoins' },
  }),
);

export const TopupStatus = named(
  'TopupStatus',
  object({
    ...HEAD,
    status: { enum: ['New', 'Settled', 'Expired'], description: 'Settled means that the account has the money' },
    payment_method: STRING,
    amount_paid: { ...COINS, description: 'In whole bitcoins' },
    amount_due: { ...COINS, description: 'In whole bitcoins' },
    lightning_invoice: INVOICE,
  }),
);

const METHOD = named(
  'PaymentMethod',
  object({
    method: text('Its place in the path of an order'),
    display_name: STRING,
    supported_currencies: array(STRING),
    limits: {
      type: 'object',
      description: 'Smallest and largest amount by currency',
      additionalProperties: object({ min: POSITIVE, max: POSITIVE }),
    },
    expiration_minutes: { type: 'integer', minimum: 1 },
    bonus: nullable(text('What is given on top')),
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
    data: { ...array(METHOD), description: 'The same again, where other clients look for it' },
  }),
);
