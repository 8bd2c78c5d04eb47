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
    accountId: 'a',
    method: 'btc-lightning',
    coin: 'BTC',
    payment,
    units: '1000000',
    amount: parseUsd('1').toString(),
    bonus: parseUsd('0.05').toString(),
    rate: invoice.rate,
    receivedAt: at,
    at,
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
  test('has the invoiced value plus the bonus of its invoice', () => {
    given(issued).when(record()).then(received());
    const without: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, bonusPercent: 0 } };
    given(without)
      .when(record())
      .then(received({ bonus: '0' }));
  });
  test('is recorded once, and is rejected if it is reported with a different amount', () => {
    given(issued, received()).when(record()).thenAlreadySo();
    given(issued, received())
      .when(record({ units: 1n }))
      .thenRefused('payment_conflict');
  });
  test('after the expiry is credited at the market rate, and records the source of the rate', () => {
    const receivedAt = '2026-11-20T12:15:00.001Z';
    const [event] = given(issued).when(record({ receivedAt, market })).events();
    const { amount, rate } = market;
    expect(event).toEqual(
      received({ amount: amount.toString(), bonus: parseUsd('0.025').toString(), rate, receivedAt }),
    );
    expect(() => given(issued).when(record({ receivedAt })).events()).toThrow('without a rate');
  });
  test('to an address is credited at the market rate if it becomes final more than two hours after the expiry', () => {
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
  test('has the invoiced value if it arrives exactly at the expiry, and its market value is recorded', () => {
    const receivedAt = invoice.expiresAt;
    const [event] = given(issued).when(record({ receivedAt, market })).events();
    expect(event).toEqual(received({ receivedAt, market: { ...market, amount: market.amount.toString() } }));
  });
  test('is rejected if its invoice was never issued', () => {
    given().when(record()).thenRefused('topup_not_found');
  });
  test('is a different payment if it has another backend or another id', () => {
    for (const other of [
      { backend: 'lnd', id: 'cd' },
      { backend: 'btcpay', id: 'ab' },
    ]) {
      const [event] = given(issued, received())
        .when(record({ payment: other, market }))
        .events();
      expect(event).toMatchObject({ type: 'PaymentReceived', data: { payment: other } });
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

describe('a payment that is not final yet', () => {
  const onChain: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, confirmations: 2 } };
  const seen: PaymentSeen = {
    type: 'PaymentSeen',
    data: { payment, units: '1000000', confirmations: 0, seenAt: at, at },
  };

  test('is recorded as seen and not credited yet', () => {
    given(onChain)
      .when(record({ confirmations: 0 }))
      .then(seen);
  });
  test('is recorded as seen while it is pending, even if the invoice requires no confirmations', () => {
    given(issued)
      .when(record({ confirmations: 'pending' }))
      .then(seen);
    given(issued, seen).when(record()).then(received());
  });
  test('is not recorded again while its confirmations do not suffice', () => {
    given(onChain, seen)
      .when(record({ confirmations: 1 }))
      .thenAlreadySo();
  });
  test('is recorded as lost once it disappears, and can be seen again', () => {
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
  test('that belongs to another top-up leaves this one as it was before the payment was seen', () => {
    const contested: TopupEvent = { type: 'PaymentLost', data: { payment, at, isContested: true } };
    given(onChain, seen)
      .when(record({ isClaimed: false }))
      .then(contested);
    given(onChain, seen, contested)
      .when(record({ isClaimed: false }))
      .thenAlreadySo();
    given(onChain)
      .when(record({ isClaimed: false }))
      .thenAlreadySo();
    const other = record({ payment: { ...payment, id: 'cd' }, market });
    expect(given(onChain, seen, contested).when(other).events()).toEqual(given(onChain).when(other).events());
  });
  test('is received once it has the required confirmations or its backend reports it as final', () => {
    for (const confirmations of [2, 3, 'final'] as const) {
      given(onChain, seen).when(record({ confirmations })).then(received());
      given(onChain).when(record({ confirmations })).then(received());
    }
  });
});

describe('a reversed payment', () => {
  const reverse = (units: bigint, more: Partial<PaymentAdjustment> = {}) =>
    record({ reversals: [{ id: 'r1', units, why: 'refunded', ...more }] });
  const reversed = (units: string, amount: string, bonus: string, reversalId = 'r1'): PaymentReversed => ({
    type: 'PaymentReversed',
    data: {
      accountId: 'a',
      method: 'btc-lightning',
      reversalId,
      payment,
      coin: 'BTC',
      units,
      amount,
      bonus,
      why: 'refunded',
      at,
    },
  });
  const whole = reversed('-1000000', parseUsd('-1').toString(), parseUsd('-0.05').toString());

  test('loses its amount and its bonus', () => {
    given(issued, received()).when(reverse(-1_000_000n)).then(whole);
  });
  test('is reversed once for each reversal id', () => {
    given(issued, received(), whole).when(reverse(-1_000_000n)).thenAlreadySo();
    given(issued, received(), whole).when(reverse(-1n)).thenRefused('payment_conflict');
  });
  test('loses exactly its amount if it is reversed in parts that need rounding', () => {
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
  test('can be restored up to its amount', () => {
    const again = reverse(1_000_000n, { id: 'r2' });
    given(issued, received(), whole)
      .when(again)
      .then(reversed('1000000', parseUsd('1').toString(), parseUsd('0.05').toString(), 'r2'));
    given(issued, received()).when(again).thenRefused('payment_conflict');
  });
  test('can be both refunded and disputed, and loses at most twice its amount', () => {
    const owed = reversed('-1000000', parseUsd('-1').toString(), parseUsd('-0.05').toString(), 'dispute');
    given(issued, received(), whole)
      .when(reverse(-1_000_000n, { id: 'dispute' }))
      .then(owed);
    given(issued, received(), whole, owed)
      .when(reverse(-1n, { id: 'third' }))
      .thenRefused('payment_conflict');
  });
  test('loses the same part of its market value as of its amount', () => {
    const rated = received({ market: { rate: market.rate, amount: parseUsd('0.5').toString() } });
    const [event] = given(issued, rated).when(reverse(-500_000n)).events();
    expect(event).toMatchObject({
      data: { amount: parseUsd('-0.5').toString(), market: parseUsd('-0.25').toString() },
    });
  });
  test('loses nothing more than it had if it is refunded in part and lost in the same report', () => {
    const both = record({ confirmations: 'lost', reversals: [{ id: 'r1', units: -400_000n, why: 'refunded' }] });
    const events = given(issued, received()).when(both).events();
    expect(events.map(({ data }) => (data as PaymentReversed['data']).units)).toEqual(['-400000', '-600000']);
  });
  test('is received and reversed in one command if the first report includes a reversal', () => {
    given(issued).when(reverse(-1_000_000n)).then(received(), whole);
  });
});

describe('a payment that its network rolls back', () => {
  const lost = (n: number, units = '-1000000'): TopupEvent => ({
    type: 'PaymentReversed',
    data: {
      accountId: 'a',
      method: 'btc-lightning',
      reversalId: `ab:lost:${n}`,
      payment,
      coin: 'BTC',
      units,
      amount: parseUsd('-1').toString(),
      bonus: parseUsd('-0.05').toString(),
      why: 'reversed by its network',
      at,
    },
  });
  const found: TopupEvent = {
    type: 'PaymentReversed',
    data: {
      accountId: 'a',
      method: 'btc-lightning',
      reversalId: 'ab:found:1',
      payment,
      coin: 'BTC',
      units: '1000000',
      amount: parseUsd('1').toString(),
      bonus: parseUsd('0.05').toString(),
      why: 'confirmed again',
      at,
    },
  };
  const gone = record({ confirmations: 'lost' });

  test('is reversed once for each loss, and restored once when it is confirmed again', () => {
    given(issued, received()).when(gone).then(lost(1));
    given(issued, received(), lost(1)).when(gone).thenAlreadySo();
    given(issued, received(), lost(1)).when(record()).then(found);
    given(issued, received(), lost(1), found).when(record()).thenAlreadySo();
    given(issued, received(), lost(1), found).when(gone).then(lost(2));
    const traceless = record({ confirmations: 'lost', units: 0n });
    given(issued, received()).when(traceless).then(lost(1));
  });
  test('is not restored before it has the required confirmations', () => {
    const onChain: TopupEvent = { type: 'InvoiceIssued', data: { ...invoice, confirmations: 2 } };
    given(onChain, received(), lost(1))
      .when(record({ confirmations: 1 }))
      .thenAlreadySo();
  });
});

describe('a fee of the payment backend', () => {
  const fee = (units: bigint) => record({ fees: [{ id: 'f1', units, why: 'liquidity' }] });
  const charged: TopupEvent = {
    type: 'PaymentFeeCharged',
    data: {
      method: 'btc-lightning',
      coin: 'BTC',
      payment,
      feeId: 'f1',
      units: '4000',
      amount: parseUsd('0.004').toString(),
      why: 'liquidity',
      at,
    },
  };

  test('is paid by the operator: the customer is credited in full', () => {
    given(issued).when(fee(4_000n)).then(received(), charged);
  });
  test('can be reported after the payment, and is recorded once by its id', () => {
    given(issued, received()).when(fee(4_000n)).then(charged);
    given(issued, received(), charged).when(fee(4_000n)).thenAlreadySo();
    given(issued, received(), charged).when(fee(1n)).thenRefused('payment_conflict');
    given(issued, received()).when(fee(0n)).thenAlreadySo();
  });
  test('is recorded once if one report lists it twice', () => {
    const { id, units, why } = { id: 'f1', units: 4_000n, why: 'liquidity' };
    given(issued, received())
      .when(
        record({
          fees: [
            { id, units, why },
            { id, units, why },
          ],
        }),
      )
      .then(charged);
  });
});

test('an invoice is issued once, and another one for the same top-up is rejected', () => {
  given().when({ type: 'IssueInvoice', data: invoice }).then(issued);
  given(issued).when({ type: 'IssueInvoice', data: invoice }).thenAlreadySo();
  given(issued)
    .when({ type: 'IssueInvoice', data: { ...invoice, reference: 'other' } })
    .thenRefused('topup_exists');
});
