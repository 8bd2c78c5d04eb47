import { describe, expect, test } from '@jest/globals';
import { type PaymentReceived, type PaymentReversed, type TopupEvent, type TopupStep, topupWorkflow } from '#domain';
import { fold, parseUsd } from '#kernel';
import { createIssuedInvoice, createWorkflowTest } from '#testing';

const MINUTE = 60_000;
const given = createWorkflowTest(topupWorkflow);
const invoice = createIssuedInvoice({ accountId: 'a', reference: 'ab', expiresAt: '2026-11-20T12:15:00.000Z' });
const issued: TopupEvent = { type: 'InvoiceIssued', data: invoice };
const issuedAddress: TopupEvent = {
  type: 'InvoiceIssued',
  data: { ...invoice, destination: { kind: 'address', value: 'x' } },
};
const issuedPage: TopupEvent = {
  type: 'InvoiceIssued',
  data: { ...invoice, destination: { kind: 'page', value: 'x' } },
};
const payment = { backend: 'lnd', id: 'ab' };
const at = '2026-11-20T12:01:00.000Z';
const moved = { accountId: 'a', method: 'btc-lightning', payment, units: '1000000', at } as const;
const data: PaymentReceived['data'] = {
  ...moved,
  coin: 'BTC',
  amount: parseUsd('1').toString(),
  bonus: parseUsd('0.05').toString(),
  rate: invoice.rate,
  receivedAt: at,
};
const received: TopupEvent = { type: 'PaymentReceived', data };
const credited: TopupEvent = { type: 'TopupCredited', data: { payment, at } };
const taken: PaymentReversed['data'] = {
  ...moved,
  units: '-1000000',
  reversalId: 'refund',
  why: 'refunded',
  amount: parseUsd('-1').toString(),
  bonus: parseUsd('-0.05').toString(),
};
const reversed: TopupEvent = { type: 'PaymentReversed', data: taken };

const { method, coin, backend, reference, confirmations } = invoice;
const question = { method, coin, backend, reference, confirmations, pending: [], received: [] } as const;
const look: TopupStep = { step: 'query', query: question };
const add = (now: string): TopupStep => {
  const credit = {
    creditId: 'lnd/ab',
    method: 'btc-lightning',
    amount: parseUsd('1'),
    bonus: parseUsd('0.05'),
    at: now,
  };
  return { step: 'send', command: { target: 'account', id: 'a', command: { type: 'AddCredit', data: credit } } };
};
const mark = (now: string): TopupStep => {
  return { step: 'send', command: { target: 'topup', command: { type: 'MarkCredited', data: { payment, at: now } } } };
};
const takeBack = (now: string): TopupStep => {
  const amounts = { amount: parseUsd('-1'), bonus: parseUsd('-0.05') };
  const reversal = {
    reversalId: 'lnd/refund',
    creditId: 'lnd/ab',
    method: 'btc-lightning',
    ...amounts,
    why: 'refunded',
  };
  const command = { type: 'ReverseCredit', data: { ...reversal, at: now } } as const;
  return { step: 'send', command: { target: 'account', id: 'a', command } };
};

describe('the payments of a top-up', () => {
  test('are checked every 2 s before the expiry, then every minute, and every hour after the first hour', () => {
    given(issued).when('2026-11-20T12:14:59.000Z').then([look], '2026-11-20T12:15:01.000Z');
    given(issued).when('2026-11-20T12:15:00.000Z').then([look], '2026-11-20T12:16:00.000Z');
    given(issued).when('2026-11-20T13:15:00.000Z').then([look], '2026-11-20T14:15:00.000Z');
  });

  test('by Lightning are checked until a week after the expiry; later, only when the workflow is woken', () => {
    given(issued).when('2026-11-27T12:14:59.999Z').then([look], '2026-11-27T13:14:59.999Z');
    given(issued).when('2026-11-27T12:15:00.000Z').then([look]);
  });

  test('by Lightning are checked 678 times if the top-up is never paid', () => {
    const topup = fold(topupWorkflow.decider, topupWorkflow.decider.getInitialState(), [issued]);
    let looks = 0;
    for (let now: string | undefined = '2026-11-20T12:00:00.000Z'; now !== undefined; ) {
      const next = topupWorkflow.plan(topup, now);
      looks += next.steps.length;
      now = next.dueAt;
    }
    expect(looks).toBe((15 * MINUTE) / 2_000 + 60 + 7 * 24);
  });

  test('are no longer checked once a Lightning invoice is paid, but are still checked for an address', () => {
    given(issued, received, credited).when(at).then([]);
    const lookAgain: TopupStep = { step: 'query', query: { ...question, received: ['ab'] } };
    given(issuedAddress, received, credited).when(at).then([lookAgain], '2026-11-20T12:02:00.000Z');
  });

  test('to an address are checked daily after the first week, until 180 days after the expiry', () => {
    given(issuedAddress).when('2026-11-27T12:15:00.000Z').then([look], '2026-11-28T12:15:00.000Z');
    given(issuedAddress).when('2027-05-19T12:14:59.999Z').then([look], '2027-05-20T12:14:59.999Z');
    given(issuedAddress).when('2027-05-19T12:15:00.000Z').then([look]);
  });

  test('through a payment page are still checked after one was received, because it can be reversed', () => {
    const lookAgain: TopupStep = { step: 'query', query: { ...question, received: ['ab'] } };
    given(issuedPage).when(at).then([look], '2026-11-20T12:01:02.000Z');
    given(issuedPage, received, credited).when(at).then([lookAgain], '2026-11-20T12:02:00.000Z');
    given(issuedPage, received, credited)
      .when('2027-05-19T12:14:59.999Z')
      .then([lookAgain], '2027-05-20T12:14:59.999Z');
    given(issuedPage, received, credited).when('2027-05-19T12:15:00.000Z').then([lookAgain]);
  });

  test('that are pending are part of the query', () => {
    const seen: TopupEvent = {
      type: 'PaymentSeen',
      data: { payment, units: '1', confirmations: 0, seenAt: at, at },
    };
    const missing: TopupStep = { step: 'query', query: { ...question, pending: ['ab'] } };
    given(issuedAddress, seen).when(at).then([missing], '2026-11-20T12:01:02.000Z');
    given(issuedAddress, seen, { type: 'PaymentLost', data: { payment, at } })
      .when(at)
      .then([look], '2026-11-20T12:01:02.000Z');
  });

  test('are not checked if the top-up does not exist', () => {
    given().when(at).then([]);
  });
});

describe('a payment', () => {
  test('is credited to the account and then marked as credited', () => {
    given(issued, received)
      .when(at)
      .then([add(at), mark(at)]);
    given(issued, received, credited).when(at).then([]);
  });

  test('that was reversed is credited first, then the credit is reversed', () => {
    given(issued, received, reversed)
      .when(at)
      .then([add(at), mark(at), takeBack(at)]);
    given(issued, received, credited, reversed)
      .when(at)
      .then([takeBack(at)]);
  });
});
