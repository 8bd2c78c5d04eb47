import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStreams } from '#application';
import { MemoryEventStore } from '#eventstore';
import type { Foundation } from '#foundation';
import { createRootCause, NO_SNAPSHOTS, parseUsd } from '#kernel';
import { createFullPayment, createIssuedInvoice } from '#testing';
import { creditExcess, printPayments, recordExcessRefund } from './payments.ts';

const invoice = createIssuedInvoice();
const runtime = { generateId: () => crypto.randomUUID(), sleep: async () => {}, reportError: () => {} };
const NOTHING = '0 payments exceed the maximum of their method: 0 USD are owed';
const OWED = [
  '1 payments exceed the maximum of their method: 9000 USD are owed',
  '2026-11-20T12:00:00.000Z  t1 lnd/ab  9000 USD of a, btc-lightning',
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
    expect(await list()).toEqual([NOTHING]);
    expect(await credit()).toEqual(['The excess of lnd/ab was credited before']);
  });
  test('is listed until its refund is recorded', async () => {
    expect(await refund()).toEqual(['The refund of the excess of lnd/ab is recorded']);
    expect(await list()).toEqual([NOTHING]);
    expect(await refund()).toEqual(['The refund of the excess of lnd/ab was recorded before']);
    await expect(credit()).rejects.toThrow('Payment lnd/ab has no excess that is owed.');
  });
  test('is credited only for a payment that exists', async () => {
    await expect(credit('lnd/cd')).rejects.toThrow('Payment lnd/cd was never received.');
    await expect(credit('ab')).rejects.toThrow('A payment is named by its payment backend');
    expect(await list()).toEqual(OWED);
  });
});
