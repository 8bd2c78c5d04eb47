import { describe, expect, test } from '@jest/globals';
import {
  type PaymentAdjustment,
  type PaymentReceived,
  type PaymentReversed,
  type PaymentSeen,
  type TopupEvent,
  topupDecider,
} from '#domain';
import { parseUsd } from '#kernel';
import { createDeciderTest, createFullPayment, createIssuedInvoice } from '#testing';

const given = createDeciderTest(topupDecider);
const at = '2026-11-20T12:00:00.000Z';

const invoice = createIssuedInvoice();
const payment = { backend: 'lnd', id: 'ab' };
const issued: TopupEvent = { type: 'InvoiceIssued', data: invoice };
const received = (more: Partial<PaymentReceived['data']> = {}): TopupEvent => ({
  type: 'PaymentReceived',
  data: {
    ...{ accountId: 'a', method: 'btc-lightning', coin: 'BTC', payment, units: '1000000' },
    ...{ amount: parseUsd('1').toString(), bonus: parseUsd('0.05').toString() },
    ...{ rate: invoice.rate, receivedAt: at, at },
    ...more,
  },
});
const market = {
  rate: { value: '50000', source: 'coinbase', at: '2026-11-20T18:00:00.000Z' },
  amount: parseUsd('0.5'),
};
const record = (more: Parameters<typeof createFullPayment>[1] = {}) => ({
  type: 'RecordPayment' as const,
  data: createFullPayment(invoice, more),
});

describe('a payment', () => {
  test('of an invoice is worth what was asked for, and the bonus that was promised more', () => {
    given(issued).when(record()).then(received());
    const without: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, bonusPercent: 0 } };
    given(without)
      .when(record())
      .then(received({ bonus: '0' }));
  });
  test('reported again is the same payment; with another amount it is refused', () => {
    given(issued, received()).when(record()).thenAlreadySo();
    given(issued, received())
      .when(record({ units: 1n }))
      .thenRefused('payment_conflict');
  });
  test('of more than was asked for is worth its share more', () => {
    const [event] = given(issued)
      .when(record({ units: 1_500_000n }))
      .events();
    expect(event).toMatchObject({ data: { amount: parseUsd('1.5').toString(), bonus: parseUsd('0.075').toString() } });
  });
  test('that came too late is worth what it is at the rate of its own time, whose source it names', () => {
    const receivedAt = '2026-11-20T12:15:00.001Z';
    const [event] = given(issued).when(record({ receivedAt, market })).events();
    const { amount, rate } = market;
    expect(event).toEqual(
      received({ amount: amount.toString(), bonus: parseUsd('0.025').toString(), rate, receivedAt }),
    );
    expect(() => given(issued).when(record({ receivedAt })).events()).toThrow('without a rate');
  });
  test('on a chain that is final only hours after the expiry is worth what the market says: its sender could choose', () => {
    const destination = { kind: 'address', value: 'x' } as const;
    const onChain: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, destination } };
    const paid = (when: string, past: TopupEvent) => {
      const [event] = given(past)
        .when(record({ market, at: when }))
        .events();
      return event?.type === 'PaymentReceived' ? [event.data.amount, event.data.rate.value] : [];
    };
    expect(paid('2026-11-20T14:15:00.000Z', onChain)).toEqual([parseUsd('1').toString(), '100000.00']);
    expect(paid('2026-11-20T14:15:00.001Z', onChain)).toEqual([parseUsd('0.5').toString(), '50000']);
    expect(paid('2026-11-20T14:15:00.001Z', issued)).toEqual([parseUsd('1').toString(), '100000.00']);
  });
  test('in time is worth what was asked for to the last millisecond, and what the market gave is noted', () => {
    const receivedAt = invoice.expiresAt;
    const [event] = given(issued).when(record({ receivedAt, market })).events();
    expect(event).toEqual(received({ receivedAt, market: { ...market, amount: market.amount.toString() } }));
  });
  test('of an invoice that was never issued is refused', () => {
    given().when(record()).thenRefused('topup_not_found');
  });
  test('is another one where another back end, or the same one, calls it something else', () => {
    for (const other of [
      { backend: 'lnd', id: 'cd' },
      { backend: 'btcpay', id: 'ab' },
    ]) {
      given(issued, received())
        .when(record({ payment: other }))
        .then(received({ payment: other }));
    }
  });
  test('is marked as credited once', () => {
    const mark = { type: 'MarkCredited' as const, data: { payment, at } };
    const credited: TopupEvent = { type: 'TopupCredited', data: { payment, at } };
    given(issued, received()).when(mark).then(credited);
    given(issued, received(), credited).when(mark).thenAlreadySo();
    given(issued).when(mark).thenRefused('payment_conflict');
  });
});

describe('a payment that must be confirmed', () => {
  const onChain: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, confirmations: 2 } };
  const seen: PaymentSeen = {
    type: 'PaymentSeen',
    data: { payment, units: '1000000', confirmations: 0, seenAt: at, at },
  };

  test('is seen, and worth nothing yet', () => {
    given(onChain)
      .when(record({ confirmations: 0 }))
      .then(seen);
  });
  test('is seen while it may still fail, however few confirmations were promised', () => {
    given(issued)
      .when(record({ confirmations: 'pending' }))
      .then(seen);
    given(issued, seen).when(record()).then(received());
  });
  test('is seen once, however often it is looked at', () => {
    given(onChain, seen)
      .when(record({ confirmations: 1 }))
      .thenAlreadySo();
  });
  test('that is not there any more is lost, and can be seen again', () => {
    const lost: TopupEvent = { type: 'PaymentLost', data: { payment, at } };
    given(onChain, seen)
      .when(record({ confirmations: 'lost' }))
      .then(lost);
    given(onChain, seen, lost)
      .when(record({ confirmations: 'lost' }))
      .thenAlreadySo();
    given(onChain, seen, lost)
      .when(record({ confirmations: 0 }))
      .then(seen);
    given(onChain)
      .when(record({ confirmations: 'lost' }))
      .thenAlreadySo();
  });
  test('is received once it is confirmed as often as was promised, or its back end vouches for it', () => {
    for (const confirmations of [2, 3, 'final'] as const) {
      given(onChain, seen).when(record({ confirmations })).then(received());
      given(onChain).when(record({ confirmations })).then(received());
    }
  });
});

describe('a payment that is reversed', () => {
  const reverse = (units: bigint, more: Partial<PaymentAdjustment> = {}) =>
    record({ reversals: [{ id: 'r1', units, why: 'refunded', ...more }] });
  const reversed = (units: string, amount: string, bonus: string, reversalId = 'r1'): PaymentReversed => ({
    type: 'PaymentReversed',
    data: {
      ...{ accountId: 'a', method: 'btc-lightning', reversalId, payment, coin: 'BTC', units },
      ...{ amount, bonus, why: 'refunded', at },
    },
  });
  const whole = reversed('-1000000', parseUsd('-1').toString(), parseUsd('-0.05').toString());

  test('loses its amount and its bonus', () => {
    given(issued, received()).when(reverse(-1_000_000n)).then(whole);
  });
  test('is reversed once by the id of the reversal', () => {
    given(issued, received(), whole).when(reverse(-1_000_000n)).thenAlreadySo();
    given(issued, received(), whole).when(reverse(-1n)).thenRefused('payment_conflict');
  });
  test('in parts loses exactly the whole, however the parts are rounded', () => {
    const odd = received({ units: '3', amount: '100', bonus: '5' });
    const paidOdd = { units: 3n };
    let past: TopupEvent[] = [issued, odd];
    for (const reversalId of ['r1', 'r2', 'r3']) {
      past = [
        ...past,
        ...given(...past)
          .when(record({ ...paidOdd, reversals: [{ id: reversalId, units: -1n, why: 'refunded' }] }))
          .events(),
      ];
    }
    const lost = past.flatMap(({ type, data }) => (type === 'PaymentReversed' ? [data] : []));
    const sum = (of: 'amount' | 'bonus') => lost.reduce((total, data) => total + BigInt(data[of]), 0n);
    expect([sum('amount'), sum('bonus')]).toEqual([-100n, -5n]);
  });
  test('can come back, and never gets more than it was', () => {
    const again = reverse(1_000_000n, { id: 'r2' });
    given(issued, received(), whole)
      .when(again)
      .then(reversed('1000000', parseUsd('1').toString(), parseUsd('0.05').toString(), 'r2'));
    given(issued, received()).when(again).thenRefused('payment_conflict');
  });
  test('can be refunded and disputed as well, and then loses twice what it was, and no more', () => {
    const owed = reversed('-1000000', parseUsd('-1').toString(), parseUsd('-0.05').toString(), 'dispute');
    given(issued, received(), whole)
      .when(reverse(-1_000_000n, { id: 'dispute' }))
      .then(owed);
    given(issued, received(), whole, owed)
      .when(reverse(-1n, { id: 'third' }))
      .thenRefused('payment_conflict');
  });
  test('takes back what the market gave for it too', () => {
    const rated = received({ market: { rate: market.rate, amount: parseUsd('0.5').toString() } });
    const [event] = given(issued, rated).when(reverse(-500_000n)).events();
    expect(event).toMatchObject({
      data: { amount: parseUsd('-0.5').toString(), market: parseUsd('-0.25').toString() },
    });
  });
  test('with the report that brings it is received and reversed', () => {
    given(issued).when(reverse(-1_000_000n)).then(received(), whole);
  });
});

describe('a payment that its network undoes', () => {
  const lost = (n: number, units = '-1000000'): TopupEvent => ({
    type: 'PaymentReversed',
    data: {
      ...{ accountId: 'a', method: 'btc-lightning', reversalId: `ab:lost:${n}`, payment, coin: 'BTC', units },
      ...{ amount: parseUsd('-1').toString(), bonus: parseUsd('-0.05').toString(), why: 'undone by its network', at },
    },
  });
  const found: TopupEvent = {
    type: 'PaymentReversed',
    data: {
      ...{ accountId: 'a', method: 'btc-lightning', reversalId: 'ab:found:1', payment, coin: 'BTC', units: '1000000' },
      ...{ amount: parseUsd('1').toString(), bonus: parseUsd('0.05').toString(), why: 'confirmed after all', at },
    },
  };
  const gone = record({ confirmations: 'lost' });

  test('is taken back once, and given again once when it is confirmed after all', () => {
    given(issued, received()).when(gone).then(lost(1));
    given(issued, received(), lost(1)).when(gone).thenAlreadySo();
    given(issued, received(), lost(1)).when(record()).then(found);
    given(issued, received(), lost(1), found).when(record()).thenAlreadySo();
    given(issued, received(), lost(1), found).when(gone).then(lost(2));
    const traceless = record({ confirmations: 'lost', units: 0n });
    given(issued, received()).when(traceless).then(lost(1));
  });
  test('is not given again before it is confirmed as often as was promised', () => {
    const onChain: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, confirmations: 2 } };
    given(onChain, received(), lost(1))
      .when(record({ confirmations: 1 }))
      .thenAlreadySo();
  });
});

describe('a fee of the back end', () => {
  const fee = (units: bigint) => record({ fees: [{ id: 'f1', units, why: 'liquidity' }] });
  const charged: TopupEvent = {
    type: 'PaymentFeeCharged',
    data: {
      ...{ method: 'btc-lightning', coin: 'BTC', payment, feeId: 'f1', units: '4000' },
      ...{ amount: parseUsd('0.004').toString(), why: 'liquidity', at },
    },
  };

  test("is the house's: the customer is credited in full", () => {
    given(issued).when(fee(4_000n)).then(received(), charged);
  });
  test('counts once by its id, also where it comes later', () => {
    given(issued, received()).when(fee(4_000n)).then(charged);
    given(issued, received(), charged).when(fee(4_000n)).thenAlreadySo();
    given(issued, received(), charged).when(fee(1n)).thenRefused('payment_conflict');
    given(issued, received()).when(fee(0n)).thenAlreadySo();
  });
});

test('an invoice is issued once', () => {
  given().when({ type: 'IssueInvoice', data: invoice }).then(issued);
  given(issued).when({ type: 'IssueInvoice', data: invoice }).thenAlreadySo();
  given(issued)
    .when({ type: 'IssueInvoice', data: { ...invoice, reference: 'other' } })
    .thenRefused('topup_exists');
});
