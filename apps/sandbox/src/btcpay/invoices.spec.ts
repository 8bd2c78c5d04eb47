import { beforeEach, describe, expect, test } from '@jest/globals';
import { type Chain, Chains } from '../chains/chain.ts';
import { LightningNode } from '../lightning/node.ts';
import { type BtcPayInvoice, type BtcPayInvoiceTerms, Invoices } from './invoices.ts';

const UNITS = 100_000n;
const TERMS: BtcPayInvoiceTerms = {
  coin: 'BTC',
  kind: 'CHAIN',
  units: UNITS,
  decimals: 8,
  speedPolicy: 'MediumSpeed',
  expirySeconds: 900,
  monitoringSeconds: 3_600,
  paymentTolerance: 0,
  metadata: { orderId: 'a' },
};

let now: number;
let chain: Chain;
let invoices: Invoices;
let happened: string[];
beforeEach(() => {
  now = 1_800_000_000_000;
  const chains = new Chains();
  chain = chains.getChain('BTC');
  invoices = new Invoices(chains, new LightningNode(() => now));
  happened = [];
  invoices.subscribe((_, happenings) => happened.push(...happenings.map(({ type }) => type)));
});

const pay = ({ destination: address }: BtcPayInvoice, units: bigint, lowFee = false) =>
  chain.send({ outputs: [{ address, units }], seenAt: now, lowFee });
const pass = (seconds: number) => {
  now += seconds * 1_000;
};
const statusOf = ({ id }: BtcPayInvoice) => {
  const { status, additionalStatus } = invoices.find(id) as BtcPayInvoice;
  return [status, additionalStatus];
};

describe('an invoice over time', () => {
  test('expires without a payment', () => {
    const invoice = invoices.create(TERMS);
    pass(899);
    expect(statusOf(invoice)).toEqual(['New', 'None']);
    pass(1);
    expect(statusOf(invoice)).toEqual(['Expired', 'None']);
    expect(happened).toEqual(['InvoiceCreated', 'InvoiceExpired']);
  });

  test('expires with a partial payment, and reports the expiry and the partial payment', () => {
    const invoice = invoices.create(TERMS);
    pay(invoice, UNITS / 2n);
    pass(900);
    expect(statusOf(invoice)).toEqual(['Expired', 'PaidPartial']);
    expect(happened).toEqual([
      'InvoiceCreated',
      'InvoiceReceivedPayment',
      'InvoiceExpired',
      'InvoiceExpiredPaidPartial',
    ]);
  });

  test('that is paid after its expiry stays expired and becomes PaidLate', () => {
    const invoice = invoices.create(TERMS);
    pass(901);
    expect(statusOf(invoice)).toEqual(['Expired', 'None']);
    pay(invoice, UNITS);
    chain.mine(6);
    expect(statusOf(invoice)).toEqual(['Expired', 'PaidLate']);
    expect(happened.slice(2)).toEqual([
      'InvoiceReceivedPayment',
      'InvoicePaidAfterExpiration',
      'InvoicePaymentSettled',
    ]);
  });

  test('is invalid if its payment is not confirmed within the monitoring time', () => {
    const invoice = invoices.create(TERMS);
    pay(invoice, UNITS, true);
    pass(900 + 3_600);
    expect(statusOf(invoice)).toEqual(['Processing', 'None']);
    pass(1);
    expect(statusOf(invoice)).toEqual(['Invalid', 'None']);
    expect(happened.at(-1)).toBe('InvoiceInvalid');
  });

  test('accepts an underpayment within its tolerance', () => {
    const invoice = invoices.create({ ...TERMS, paymentTolerance: 1 });
    pay(invoice, UNITS - UNITS / 100n - 1n);
    expect(statusOf(invoice)).toEqual(['New', 'PaidPartial']);
    pay(invoice, 1n);
    expect(statusOf(invoice)).toEqual(['Processing', 'None']);
  });
});
