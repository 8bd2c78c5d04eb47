import { nameSchema } from '../openapi/operation.ts';
import { object, text, usd } from '../openapi/schemas.ts';

export const AccountSchema = nameSchema(
  'Account',
  object({
    success: { const: true },
    credit_id: text('The credential of the account itself, which is shown this once. It can manage the keys', {
      format: 'uuid',
    }),
    api_key: text('The first key of the account', { pattern: '^sk-' }),
    balance: { const: 0 },
  }),
);

/** The only amount that can be negative. */
const BALANCE = {
  type: 'number',
  description: 'What can be spent, in USD: a plain decimal; below zero after a payment was reversed',
};

export const BalanceSchema = nameSchema(
  'Balance',
  object({
    balance: BALANCE,
    balance_usd: { ...BALANCE, description: 'The same as balance' },
    held_usd: usd('Held for running requests; not included in the balance'),
    currency: { const: 'USD' },
  }),
);
