import { nameSchema } from '../openapi/operation.ts';
import { array, nullable, object, STRING, seconds, text } from '../openapi/schemas.ts';

const COINS = { type: 'number', minimum: 0 };
const POSITIVE = { type: 'number', exclusiveMinimum: 0 };
const HEAD = {
  invoice_id: text('The id to query the status with'),
  amount: { ...POSITIVE, description: 'The requested amount' },
  currency: STRING,
  created_at: seconds('When the invoice was created'),
  expires_at: seconds('When the invoice expires'),
};
const COIN_AMOUNT = 'in the main unit of the coin, such as bitcoins';
const INVOICE = text('The invoice to pay (BOLT 11)', { pattern: '^ln' });

/** The payment method determines which of these fields a response has. */
const DESTINATION = {
  lightning_invoice: INVOICE,
  address: text('The address to pay to'),
  payment_page: text('The page to pay on', { format: 'uri' }),
};

export const TopupInvoice = nameSchema(
  'TopupInvoice',
  object(
    {
      ...HEAD,
      checkout_url: text('The page on which the invoice can be paid', { format: 'uri' }),
      ...DESTINATION,
      payment_request: INVOICE,
      payment_uri: text('A link with address and amount, for wallets', { format: 'uri' }),
      crypto_amount_due: { ...POSITIVE, description: `The amount to pay, ${COIN_AMOUNT}` },
    },
    [...Object.keys(DESTINATION), 'payment_request', 'payment_uri'],
  ),
);

export const CardSession = nameSchema(
  'CardSession',
  object({
    ...HEAD,
    checkout_url: text('The page that shows the status, to which the customer returns', { format: 'uri' }),
    payment_page: DESTINATION.payment_page,
  }),
);

export const TopupStatusSchema = nameSchema(
  'TopupStatus',
  object(
    {
      ...HEAD,
      status: {
        enum: ['New', 'Processing', 'Settled', 'Expired', 'Invalid'],
        description: 'Settled: the account was credited. Invalid: the payment was reversed',
      },
      payment_method: STRING,
      amount_paid: { ...COINS, description: `The amount that was paid, ${COIN_AMOUNT}` },
      amount_due: { ...COINS, description: `The amount that is still to be paid, ${COIN_AMOUNT}` },
      ...DESTINATION,
    },
    Object.keys(DESTINATION),
  ),
);

export const WebhookReceivedSchema = nameSchema('Received', object({ status: { const: 'success' } }));

const METHOD = nameSchema(
  'PaymentMethod',
  object({
    method: text('The name to use in the path of a top-up request'),
    display_name: STRING,
    supported_currencies: array(STRING),
    limits: {
      type: 'object',
      description:
        'Minimum and maximum amount for each currency, in coins at the current exchange rate. A currency whose rate is not available is left out.',
      additionalProperties: object({ min: POSITIVE, max: POSITIVE }),
    },
    expiration_minutes: { type: 'integer', minimum: 1 },
    bonus: nullable(text('The bonus on a payment')),
    min_usd: POSITIVE,
    max_usd: POSITIVE,
    currencies: array(STRING),
  }),
);

export const PaymentMethods = nameSchema(
  'PaymentMethods',
  object({
    status: { const: 'success' },
    success: { const: true },
    supported_methods: array(METHOD),
    data: { ...array(METHOD), description: 'The same list as in `supported_methods`' },
  }),
);

export const CheckoutContent = text('An HTML page');
