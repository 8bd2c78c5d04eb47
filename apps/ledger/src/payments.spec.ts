import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStreams, PaymentRegistry } from '#application';
import { MemoryEventStore } from '#eventstore';
import type { Foundation } from '#foundation';
import { createRootCause, NO_SNAPSHOTS, parseUsd } from '#kernel';
import { createFullPayment, createIssuedInvoice, createTestRuntime } from '#testing';
import { FakeClock } from '../../../libs/testing/src/fake-clock.ts';
import { closeContests, creditExcess, printPayments, recordExcessRefund } from './payments.ts';

const invoice = createIssuedInvoice();
const runtime = createTestRuntime({ sleep: async () => {} });
const NO_CONTEST = '0 payments were reported for another top-up or challenge, which got nothing';
const NOTHING = '0 payments exceed the maximum of their method: 0 USD are owed';
const OWED = [
  '1 payments exceed the maximum of their method: 9000 USD are owed',
  '2026-11-20T12:00:00.000Z  t1 lnd/ab  9000 USD of a, btc-lightning',
  NO_CONTEST,
];

let foundation: Foundation;

/** Runs a command of the ledger, and returns the lines that it prints. */
async function print(command: (print: (line: string) => void) => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = [];
  await command((line) => lines.push(line));
  return lines;
}

const list = () => print((out) => printPayments(foundation, out));
const credit = (payment = 'lnd/ab') => print((out) => creditExcess(foundation, 't1', payment, out));
const refund = () => {
  const request = { topupId: 't1', paymentKey: 'lnd/ab', why: 'sent back by hand' };
  return print((out) => recordExcessRefund(foundation, request, out));
};

beforeEach(async () => {
  const store = new MemoryEventStore();
  foundation = { store, runtime } as unknown as Foundation;
  const { topups } = createStreams(store, NO_SNAPSHOTS, runtime);
  const market = { rate: invoice.rate, amount: parseUsd('10000') };
  const payment = createFullPayment(invoice, { units: 10_000_000_000n, market });
  const cause = createRootCause('test', 'payment');
  await topups.run('t1', { type: 'IssueInvoice', data: invoice }, cause);
  await topups.run('t1', { type: 'RecordPayment', data: payment }, cause);
});

describe('what a payment exceeds the maximum of its method by', () => {
  test('is listed until it is credited', async () => {
    expect(await list()).toEqual(OWED);
    expect(await credit()).toEqual(['The excess of lnd/ab is being credited']);
    expect(await list()).toEqual([NOTHING, NO_CONTEST]);
    expect(await credit()).toEqual(['The excess of lnd/ab was credited before']);
  });
  test('is listed until its refund is recorded', async () => {
    expect(await refund()).toEqual(['The refund of the excess of lnd/ab is recorded']);
    expect(await list()).toEqual([NOTHING, NO_CONTEST]);
    expect(await refund()).toEqual(['The refund of the excess of lnd/ab was recorded before']);
    await expect(credit()).rejects.toThrow('Payment lnd/ab has no excess that is owed.');
  });
  test('is credited only for a payment that exists', async () => {
    await expect(credit('lnd/cd')).rejects.toThrow('Payment lnd/cd was never received.');
    await expect(credit('ab')).rejects.toThrow('A payment is named by its payment backend');
    expect(await list()).toEqual(OWED);
  });
});

describe('a payment that was reported for a second top-up', () => {
  const close = () =>
    print((out) => closeContests(foundation, { paymentKey: 'lnd/ab', why: 'the node was restored' }, out));

  test('is listed until a person closes it', async () => {
    const { paymentClaims } = createStreams(foundation.store, NO_SNAPSHOTS, runtime);
    const registry = new PaymentRegistry(paymentClaims, new FakeClock('2026-11-20T12:00:00.000Z'));
    for (const claimant of ['topup-t1', 'topup-t2'])
      await registry.claim({ backend: 'lnd', id: 'ab' }, claimant, createRootCause('test', claimant));
    expect((await list()).slice(2)).toEqual([
      '1 payments were reported for another top-up or challenge, which got nothing',
      '2026-11-20T12:00:00.000Z  lnd/ab  of topup-t1, also for topup-t2',
    ]);
    expect(await close()).toEqual(['lnd/ab is no longer listed']);
    expect(await list()).toEqual(OWED);
    expect(await close()).toEqual(['lnd/ab was closed before']);
  });
  test('cannot be closed if nothing contests it', async () => {
    await expect(close()).rejects.toThrow('Nothing contests this payment.');
  });
});
