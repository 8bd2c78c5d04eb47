import { nameSchema } from '../openapi/operation.ts';
import { object, text, usd } from '../openapi/schemas.ts';

export const AccountSchema = nameSchema(
  'Account',
  object({
    success: { const: true },
    credit_id: text('The credential of the account itself; required to manage keys. Returned only in this response', {
      format: 'uuid',
    }),
    api_key: text('The first key of the account', { pattern: '^sk-' }),
    balance: { const: 0 },
  }),
);

/** The only amount that can be negative. */
const BALANCE = {
  type: 'number',
  description: 'The amount that can be spent, in USD: a plain decimal; can be negative after a payment was reversed',
};

export const BalanceSchema = nameSchema(
  'Balance',
  object({
    balance: BALANCE,
    balance_usd: { ...BALANCE, description: 'The same as `balance`' },
    held_usd: usd('Held for running requests; not included in the balance'),
    currency: { const: 'USD' },
  }),
);
