import type { CoinTerms, InvoiceIssued, PaymentTerms, ReportedPayment } from '#domain';
import { parseUsd } from '#kernel';

const AT = '2026-11-20T12:00:00.000Z';

/** Creates a Lightning invoice of 1 USD at 100,000 USD per bitcoin: 1,000 satoshis. */
export function createIssuedInvoice(overrides: Partial<InvoiceIssued['data']> = {}): InvoiceIssued['data'] {
  return {
    accountId: 'a',
    method: 'btc-lightning',
    coin: 'BTC',
    requested: { amount: '1', currency: 'USD' },
    usd: parseUsd('1').toString(),
    units: '1000000',
    rate: { value: '100000.00', source: 'kraken', at: AT },
    backend: 'lnd',
    reference: 'ab',
    destination: { kind: 'bolt11', value: 'lnbc1' },
    bonusPercent: 5,
    confirmations: 0,
    expiresAt: '2026-11-20T12:15:00.000Z',
    at: AT,
    ...overrides,
  };
}

/** Creates a payment of the invoiced amount, apart from `overrides`. */
export function createFullPayment(
  { backend, reference, units, at }: InvoiceIssued['data'],
  overrides: Partial<ReportedPayment> = {},
): ReportedPayment {
  return {
    payment: { backend, id: reference },
    units: BigInt(units),
    confirmations: 'final',
    isClaimed: true,
    receivedAt: at,
    maxAmount: parseUsd('1000'),
    at,
    ...overrides,
  };
}

/** Returns a coin of the payment terms. @throws Error if it does not exist */
export function getCoin({ coins }: Pick<PaymentTerms, 'coins'>, code: string): CoinTerms {
  const coin = coins.find((candidate) => candidate.code === code);
  if (!coin) throw new Error(`coin ${code} does not exist`);
  return coin;
}
