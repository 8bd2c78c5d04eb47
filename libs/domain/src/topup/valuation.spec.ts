/** What payments are worth that differ from their invoice: an invoice must not be an option without a limit. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type PaymentReceived,
  type PaymentReversed,
  type ReportedPayment,
  type TopupEvent,
  topupDecider,
} from '#domain';
import { money, type PicoUsd, parseUsd } from '#kernel';
import { createDeciderTest, createFullPayment, createIssuedInvoice } from '#testing';

const given = createDeciderTest(topupDecider);
const at = '2026-11-20T12:00:00.000Z';
/** 2 LTC at 100 USD. A litecoin has 10^8 units. */
const LTC = 100_000_000n;
const invoice = createIssuedInvoice({
  method: 'ltc',
  coin: 'LTC',
  backend: 'btcpay',
  usd: parseUsd('200').toString(),
  units: (2n * LTC).toString(),
  rate: { value: '100', source: 'kraken', at },
  destination: { kind: 'address', value: 'ltc1' },
  bonusPercent: 5,
});
const issued: TopupEvent = { type: 'InvoiceIssued', data: invoice };

function pay(id: string, units: bigint, price: string | null, more: Partial<ReportedPayment> = {}) {
  const rate = price === null ? undefined : { value: price, source: 'market', at };
  const amount = ((money.parseUsd(price ?? '0') * units) / LTC) as PicoUsd;
  return {
    type: 'RecordPayment' as const,
    data: {
      ...createFullPayment(invoice),
      payment: { backend: 'btcpay', id },
      units,
      maxAmount: parseUsd('1000'),
      ...(rate ? { market: { rate, amount } } : {}),
      ...more,
    },
  };
}

function receive(past: readonly TopupEvent[], command: ReturnType<typeof pay>): PaymentReceived['data'] {
  const [event] = given(...past)
    .when(command)
    .events();
  if (event?.type !== 'PaymentReceived') throw new Error(`no payment was received, but ${event?.type}`);
  return event.data;
}

const received = (data: PaymentReceived['data']): TopupEvent => ({ type: 'PaymentReceived', data });

function toUsd({ amount, bonus, excess = '0' }: { amount: string; bonus: string; excess?: string }) {
  return [amount, bonus, excess].map((pico) => money.formatUsd(BigInt(pico) as PicoUsd));
}

describe('a payment above its invoice', () => {
  test('has the rate and the bonus of the invoice up to 1 % above it', () => {
    expect(toUsd(receive([issued], pay('a', (2n * LTC * 101n) / 100n, null)))).toEqual(['202', '10.1', '0']);
  });
  test('is worth the lower rate beyond that, without a bonus', () => {
    expect(toUsd(receive([issued], pay('a', 4n * LTC, '60')))).toEqual(['320.8', '10.1', '0']);
    expect(toUsd(receive([issued], pay('a', 4n * LTC, '150')))).toEqual(['400', '10.1', '0']);
  });
  test('waits completely while there is no market rate', () => {
    expect(() => receive([issued], pay('a', 4n * LTC, null))).toThrow('without a rate');
  });
  test('is counted together with the other payments of the invoice', () => {
    const first = receive([issued], pay('a', 2n * LTC, '60'));
    const past = [issued, received(first)];
    expect(toUsd(first)).toEqual(['200', '10', '0']);
    expect(toUsd(receive(past, pay('b', 2n * LTC, '60')))).toEqual(['120.8', '0.1', '0']);
    expect(() => receive(past, pay('b', 2n * LTC, null))).toThrow('without a rate');
  });
  test('is not credited beyond the maximum of the method: the rest is owed', () => {
    const data = receive([issued], pay('a', 1_000n * LTC, '60'));
    expect(toUsd(data)).toEqual(['1000', '10.1', '59080.8']);
    const past = [issued, received(data)];
    expect(toUsd(receive(past, pay('b', LTC, '60')))).toEqual(['0', '0', '60']);
  });
  test('is credited up to the requested amount even if the maximum is lower now', () => {
    expect(toUsd(receive([issued], pay('a', 2n * LTC, '60', { maxAmount: parseUsd('50') })))).toEqual([
      '200',
      '10',
      '0',
    ]);
  });
  test('after the expiry is worth the market rate up to the requested amount, and the lower rate beyond', () => {
    const receivedAt = '2026-11-20T13:00:00.000Z';
    expect(toUsd(receive([issued], pay('a', 4n * LTC, '150', { receivedAt })))).toEqual(['501', '15.15', '0']);
    expect(toUsd(receive([issued], pay('a', 2n * LTC, '800', { receivedAt })))).toEqual(['1000', '50', '600']);
  });
});

describe('a payment that replaces a lost one', () => {
  const seen = (id: string): TopupEvent => ({
    type: 'PaymentSeen',
    data: { payment: { backend: 'btcpay', id }, units: (2n * LTC).toString(), confirmations: 0, seenAt: at, at },
  });
  const lost: TopupEvent = { type: 'PaymentLost', data: { payment: { backend: 'btcpay', id: 'a' }, at } };

  test('is worth the lower of both rates', () => {
    for (const past of [
      [issued, seen('a'), lost],
      [issued, seen('a'), lost, seen('b')],
    ]) {
      expect(toUsd(receive(past, pay('b', 2n * LTC, '60')))).toEqual(['120', '6', '0']);
      expect(toUsd(receive(past, pay('b', 2n * LTC, '150')))).toEqual(['200', '10', '0']);
    }
  });
  test('is worth the lower rate after a received payment was lost, too', () => {
    const first = receive([issued], pay('a', 2n * LTC, '100'));
    const past = [issued, received(first)];
    const rolledBack = given(...past)
      .when(pay('a', 2n * LTC, null, { confirmations: 'lost' }))
      .events();
    expect(toUsd(receive([...past, ...rolledBack], pay('b', 2n * LTC, '60')))).toEqual(['120', '6', '0']);
  });
  test('has the rate of the invoice if it was seen before', () => {
    expect(toUsd(receive([issued, seen('a'), seen('b'), lost], pay('b', 2n * LTC, '60')))).toEqual(['200', '10', '0']);
  });
});

describe('the excess of a payment', () => {
  const data = receive([issued], pay('a', 100n * LTC, '60'));
  const { payment } = data;
  const past = [issued, received(data)];
  const credit = { type: 'CreditExcess' as const, data: { payment, at } };
  const refund = { type: 'RefundExcess' as const, data: { payment, why: 'sent back', at } };
  const reverse = (units: bigint, id = 'r1') =>
    pay('a', 100n * LTC, null, { reversals: [{ id, units, why: 'refunded' }] });

  test('is credited once, when a person decides so', () => {
    const events = given(...past)
      .when(credit)
      .events();
    expect(events).toMatchObject([{ type: 'ExcessCredited', data: { amount: data.excess } }]);
    given(...past, ...events)
      .when(credit)
      .thenAlreadySo();
    given(...past, ...events)
      .when(refund)
      .thenRefused('payment_conflict');
  });
  test('is refunded once, and is then no longer owed', () => {
    const events = given(...past)
      .when(refund)
      .events();
    expect(events).toMatchObject([
      { type: 'PaymentReversed', data: { amount: '0', bonus: '0', excess: `-${data.excess}` } },
    ]);
    given(...past, ...events)
      .when(refund)
      .thenAlreadySo();
    given(...past, ...events)
      .when(credit)
      .thenRefused('payment_conflict');
  });
  test('does not exist in a payment below the maximum', () => {
    const small = [issued, received(receive([issued], pay('a', 2n * LTC, '60')))];
    given(...small)
      .when(credit)
      .thenRefused('payment_conflict');
    given(...small)
      .when(refund)
      .thenRefused('payment_conflict');
  });
  test('is reversed first, and only the rest of it can be credited', () => {
    const events = given(...past)
      .when(reverse(-50n * LTC))
      .events();
    expect(events).toMatchObject([{ data: { amount: '0', bonus: '0', excess: `-${parseUsd('3000')}` } }]);
    const [credited] = given(...past, ...events)
      .when(credit)
      .events();
    const left = BigInt(data.excess ?? 0) - parseUsd('3000');
    expect(credited).toMatchObject({ data: { amount: left.toString() } });
  });
  test.each([false, true])(
    'and all other parts are reversed exactly, however the reversal is divided (credited: %s)',
    (isCredited) => {
      fc.assert(
        fc.property(fc.array(fc.bigInt(1n, 60n * LTC), { minLength: 1, maxLength: 6 }), (cuts) => {
          let events: readonly TopupEvent[] = isCredited
            ? [
                ...past,
                ...given(...past)
                  .when(credit)
                  .events(),
              ]
            : past;
          let left = 100n * LTC;
          const reversed = (): readonly PaymentReversed['data'][] =>
            events.flatMap((event) => (event.type === 'PaymentReversed' ? [event.data] : []));
          for (const [i, cut] of [...cuts, 100n * LTC].entries()) {
            const units = cut < left ? cut : left;
            if (units === 0n) break;
            left -= units;
            events = [
              ...events,
              ...given(...events)
                .when(reverse(-units, `r${i}`))
                .events(),
            ];
          }
          const sum = (get: (data: PaymentReversed['data']) => string | undefined) =>
            reversed().reduce((total, data) => total + BigInt(get(data) ?? 0), 0n);
          const [amount, excess] = [BigInt(data.amount), BigInt(data.excess ?? 0)];
          expect(sum((part) => part.amount)).toBe(isCredited ? -amount - excess : -amount);
          expect(sum((part) => part.excess)).toBe(isCredited ? 0n : -excess);
          expect(sum((part) => part.bonus)).toBe(-BigInt(data.bonus));
          expect(sum((part) => part.market)).toBe(-BigInt(data.market?.amount ?? 0));
        }),
      );
    },
  );
});
