import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import type { ChallengePaid, PaymentFeeCharged, PaymentReceived, PaymentReversed, TopupEvent } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { NO_STREAM, parseUsd } from '#kernel';
import { printWallets } from './wallets.ts';

const AT = '2026-11-20T12:00:00.000Z';
const RATE = { value: '100000', source: 'kraken, coinbase', at: AT };

interface Paid {
  readonly method: string;
  readonly coin: string;
  readonly payment: { readonly backend: string; readonly id: string };
  readonly units: string;
}

const paid = (method: string, coin: string, backend: string, id: string, units: string): Paid => ({
  method,
  coin,
  units,
  payment: { backend, id },
});

/** A payment that was credited with an amount in USD, with its market value if that differs. */
function received(payment: Paid, credited: string, market?: string): PaymentReceived {
  const worth = market === undefined ? {} : { market: { rate: RATE, amount: parseUsd(market).toString() } };
  const amounts = { amount: parseUsd(credited).toString(), bonus: '0', rate: RATE, ...worth };
  return { type: 'PaymentReceived', data: { accountId: 'a', ...payment, ...amounts, receivedAt: AT, at: AT } };
}

function reversed({ coin, ...payment }: Paid, credited: string, more: object = { coin }): PaymentReversed {
  const amounts = { amount: parseUsd(credited).toString(), bonus: '0', ...more };
  const data = { accountId: 'a', reversalId: `of ${payment.payment.id}`, ...payment, ...amounts, why: '', at: AT };
  return { type: 'PaymentReversed', data };
}

function fee(payment: Paid, charged: string): PaymentFeeCharged {
  return {
    type: 'PaymentFeeCharged',
    data: { ...payment, feeId: 'f', amount: parseUsd(charged).toString(), why: '', at: AT },
  };
}

/** A pay-per-request payment of 14 satoshis. */
const ONCE: ChallengePaid = {
  type: 'ChallengePaid',
  data: {
    method: 'btc-lightning',
    coin: 'BTC',
    backend: 'lnd',
    units: '14000',
    amount: parseUsd('0.0119').toString(),
    price: parseUsd('0.0115').toString(),
    by: 'preimage',
    at: AT,
  },
};

async function report(
  facts: readonly (TopupEvent | ChallengePaid)[],
  until?: string,
): Promise<readonly (readonly string[])[]> {
  const store = new MemoryEventStore();
  const events = facts.map(({ type, data }) => ({ id: crypto.randomUUID(), type, data, metadata: {} }));
  if (events.length > 0) await store.append('topup-t', NO_STREAM, events);
  const lines: string[] = [];
  await printWallets({ store, coins: readPayments().coins }, until, (line) => lines.push(line));
  return lines.map((line) => line.split(/\s{2,}/));
}

const LIGHTNING = paid('btc-lightning', 'BTC', 'lnd', 'one', '1000000500');
const MONERO = paid('xmr', 'XMR', 'monero', 'tx:1', '50000000000');
const CARD = paid('card', 'USD', 'stripe', 'pi_1', '2500');
const FACTS: readonly (TopupEvent | ChallengePaid)[] = [
  received(LIGHTNING, '1000', '1010'),
  ONCE,
  received(paid('btc-lightning', 'BTC', 'phoenixd', 'two', '21000000'), '21', '20.5'),
  fee(paid('btc-lightning', 'BTC', 'phoenixd', 'two', '84000'), '0.082'),
  received(paid('ltc', 'LTC', 'btcpay', 'tx:0', '3000000'), '3'),
  received(paid('btc', 'BTC', 'btcpay', 'tx:1', '100000000'), '100'),
  reversed(paid('btc', 'BTC', 'btcpay', 'tx:1', '-100000000'), '-100'),
  received(MONERO, '10'),
  received(CARD, '25'),
  fee({ ...CARD, units: '103' }, '1.03'),
  // An event without a coin.
  reversed({ ...CARD, units: '-500' }, '-5', {}),
];

describe('printWallets', () => {
  test('prints what each payment backend should hold in each coin, and totals of rates and fees', async () => {
    expect(await report(FACTS)).toEqual([
      ['As of position 10: 11 events'],
      [''],
      ['btcpay', 'BTC', 'sat'],
      ['received', '0.001', '100000'],
      ['reversed', '-0.001', '-100000'],
      ['fees', '0', '0'],
      ['should hold', '0', '0'],
      [''],
      ['btcpay', 'LTC', 'litoshi'],
      ['received', '0.03', '3000000'],
      ['reversed', '0', '0'],
      ['fees', '0', '0'],
      ['should hold', '0.03', '3000000'],
      [''],
      ['lnd', 'BTC', 'sat'],
      ['received', '0.010000145', '1000014.5'],
      ['reversed', '0', '0'],
      ['fees', '0', '0'],
      ['should hold', '0.010000145', '1000014.5'],
      [''],
      ['monero', 'XMR', 'piconero'],
      ['received', '0.05', '50000000000'],
      ['reversed', '0', '0'],
      ['fees', '0', '0'],
      ['should hold', '0.05', '50000000000'],
      [''],
      ['phoenixd', 'BTC', 'sat'],
      ['received', '0.00021', '21000'],
      ['reversed', '0', '0'],
      ['fees', '-0.00000084', '-84'],
      ['should hold', '0.00020916', '20916'],
      [''],
      ['stripe', 'USD', 'cent'],
      ['received', '25', '2500'],
      ['reversed', '-5', '-500'],
      ['fees', '-1.03', '-103'],
      ['should hold', '18.97', '1897'],
      [''],
      ['by method, in USD', 'gained by rates', 'lost by rates', 'fees'],
      ['btc-lightning', '10', '0.5', '0.082'],
      ['card', '0', '0', '1.03'],
      [''],
      ['0 payments were recorded more than once'],
      ['0 payments were reported for another top-up or challenge, which got nothing'],
    ]);
  });

  test('includes events up to a position', async () => {
    expect(await report(FACTS, '0')).toEqual([
      ['As of position 0: 1 events'],
      [''],
      ['lnd', 'BTC', 'sat'],
      ['received', '0.010000005', '1000000.5'],
      ['reversed', '0', '0'],
      ['fees', '0', '0'],
      ['should hold', '0.010000005', '1000000.5'],
      [''],
      ['by method, in USD', 'gained by rates', 'lost by rates', 'fees'],
      ['btc-lightning', '10', '0', '0'],
      [''],
      ['0 payments were recorded more than once'],
      ['0 payments were reported for another top-up or challenge, which got nothing'],
    ]);
  });

  test('prints unscaled units for a coin that was removed from the catalogue', async () => {
    const doge = await report([received(paid('doge', 'DOGE', 'btcpay', 'd', '700'), '7')]);
    expect(doge.slice(2, 4)).toEqual([
      ['btcpay', 'DOGE units'],
      ['received', '700'],
    ]);
  });

  test('names a payment that was recorded for two top-ups', async () => {
    const store = new MemoryEventStore();
    for (const [stream, payment] of [
      ['topup-a', LIGHTNING],
      ['topup-b', LIGHTNING],
      ['topup-c', MONERO],
    ] as const) {
      const { type, data } = received(payment, '10');
      await store.append(stream, NO_STREAM, [{ id: crypto.randomUUID(), type, data, metadata: {} }]);
    }
    const lines: string[] = [];
    await printWallets({ store, coins: [] }, undefined, (line) => lines.push(line));
    expect(lines.slice(-3, -1)).toEqual(['1 payments were recorded more than once', 'lnd/one: topup-a, topup-b']);
  });

  test('prints that it includes 0 events if there are none', async () => {
    expect((await report([]))[0]).toEqual(['As of the beginning: 0 events']);
  });

  test('rejects a reversal of a payment that was never received', async () => {
    await expect(report([reversed(CARD, '-25', {})])).rejects.toThrow(
      'payment stripe/pi_1 was reversed but never received',
    );
  });
});
