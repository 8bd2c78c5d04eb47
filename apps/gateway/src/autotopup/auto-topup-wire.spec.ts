import { expect, test } from '@jest/globals';
import { parseUsd } from '#kernel';
import type { AutoTopupView } from '#projections';
import { toAutoTopupJson } from './auto-topup-wire.ts';

const [AT, ENDED] = ['2026-11-20T12:00:00.000Z', '2026-11-20T12:16:00.000Z'];
const attempt = { topupId: 't', amount: parseUsd(10), state: 'expired', requests: 9, at: AT, endedAt: ENDED } as const;
const view: AutoTopupView = {
  wallet: { pubkey: 'ab', relays: ['wss://relay.wallet.dev'] },
  threshold: parseUsd(10),
  amount: parseUsd(10),
  connectedAt: AT,
  changedAt: AT,
  attempt,
  paidAt: null,
  paused: undefined,
  error: undefined,
};

test('reports EXPIRED for a wallet that was sent a request and neither paid nor reported an error', () => {
  const { last_error, last_error_code, last_error_at, state } = toAutoTopupJson(view, ENDED) as Record<string, unknown>;
  expect([state, last_error_code, last_error_at]).toEqual(['waiting', 'EXPIRED', ENDED]);
  expect(last_error).toContain('expired without a payment');
});

test('reports the error of the wallet instead of EXPIRED, and no EXPIRED after a reconnection or a new attempt', () => {
  const error = { code: 'PAYMENT_FAILED', message: 'no route', at: AT };
  expect(toAutoTopupJson({ ...view, error }, ENDED)).toMatchObject({ last_error_code: 'PAYMENT_FAILED' });
  const later = { ...view, connectedAt: '2026-11-20T13:00:00.000Z' };
  expect(toAutoTopupJson(later, ENDED)).toMatchObject({ last_error: null, last_error_code: null });
  const again = { ...view, attempt: { ...attempt, state: 'asked', endedAt: null } } as const;
  expect(toAutoTopupJson(again, ENDED)).toMatchObject({ last_error: null, last_error_code: null });
});
