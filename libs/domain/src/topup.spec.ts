import { describe, expect, test } from '@jest/globals';
import { type InvoiceIssued, msatFor, type Payment, type TopupEvent, topupDecider, worth } from '#domain';
import { formatUsd, usd } from '#kernel';
import { decisions } from '#testing';

const given = decisions(topupDecider);
const at = '2026-11-20T12:00:00.000Z';

const invoice: InvoiceIssued['data'] = {
  accountId: 'a',
  method: 'btc-lightning',
  requested: { amount: '1', currency: 'USD' },
  usd: usd('1').toString(),
  rate: '100000.00',
  rateSource: 'kraken',
  msat: '1000000',
  paymentHash: 'ab',
  invoice: 'lnbc1',
  expiresAt: '2026-11-20T12:15:00.000Z',
  at,
};
const issued: TopupEvent = { type: 'InvoiceIssued', data: invoice };
const received = (more: object = {}): TopupEvent => ({
  type: 'PaymentReceived',
  data: {
    accountId: 'a',
    method: 'btc-lightning',
    paymentId: 'ab',
    msat: '1000000',
    amount: usd('1').toString(),
    bonus: usd('0.05').toString(),
    rate: '100000.00',
    paidAt: at,
    at,
    ...more,
  },
});
const record = (more: Partial<Payment> = {}) => ({
  type: 'RecordPayment' as const,
  data: { paymentId: 'ab', msat: 1_000_000n, paidAt: at, at, ...more },
});

describe('a payment', () => {
  test('of an invoice is worth what was asked for, and five hundredths more', () => {
    given(issued).when(record()).then(received());
  });
  test('reported again is the same payment; with another amount it is refused', () => {
    given(issued, received()).when(record()).thenAlreadySo();
    given(issued, received())
      .when(record({ msat: 1n }))
      .thenRefused('payment_conflict');
  });
  test('of more than was asked for is worth its share more', () => {
    const [event] = given(issued)
      .when(record({ msat: 1_500_000n }))
      .events();
    expect(event).toMatchObject({ data: { amount: usd('1.5').toString(), bonus: usd('0.075').toString() } });
  });
  test('that came too late is worth what it is at the rate of its own time', () => {
    const [event] = given(issued)
      .when(record({ lateRate: '50000' }))
      .events();
    expect(event).toMatchObject({ data: { amount: usd('0.5').toString(), rate: '50000' } });
  });
  test('of an invoice that was never issued is refused', () => {
    given().when(record()).thenRefused('topup_not_found');
  });
  test('is marked as credited once', () => {
    const mark = { type: 'MarkCredited' as const, data: { paymentId: 'ab', at } };
    const credited: TopupEvent = { type: 'TopupCredited', data: { paymentId: 'ab', at } };
    given(issued, received()).when(mark).then(credited);
    given(issued, received(), credited).when(mark).thenAlreadySo();
    given(issued).when(mark).thenRefused('payment_conflict');
  });
});

test('an invoice is issued once', () => {
  given().when({ type: 'IssueInvoice', data: invoice }).then(issued);
  given(issued).when({ type: 'IssueInvoice', data: invoice }).thenAlreadySo();
  given(issued)
    .when({ type: 'IssueInvoice', data: { ...invoice, invoice: 'other' } })
    .thenRefused('topup_exists');
});

test('an amount costs whole satoshis, rounded up, and satoshis are worth their rate', () => {
  expect(msatFor(usd('1'), '85252')).toBe(1_173_000n);
  expect(formatUsd(worth(1_000_000n, '67516.00'))).toBe('0.67516');
});
