import { expect, test } from '@jest/globals';
import { type CreditAdded, type TopupCredited, toPaymentKey } from '#domain';
import { upcastCreditAddedV1, upcastPaymentReceivedV1, upcastTopupCreditedV1 } from './topups.ts';

const at = '2026-11-20T12:00:00.000Z';
const HASH = '5b0e';

test('an old payment has the same id in all upcast events, so that it is not credited twice', () => {
  const received = upcastPaymentReceivedV1({ paymentId: HASH, msat: '1', rate: '1', paidAt: at, at });
  for (const { payment } of [received, upcastTopupCreditedV1({ paymentId: HASH, at })] as TopupCredited['data'][]) {
    expect(toPaymentKey(payment)).toBe((upcastCreditAddedV1({ creditId: HASH, at }) as CreditAdded['data']).creditId);
  }
});
