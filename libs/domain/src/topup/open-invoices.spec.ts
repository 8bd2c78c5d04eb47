import { test } from '@jest/globals';
import { type InvoiceAllowed, type InvoiceDropped, openInvoicesDecider } from '#domain';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(openInvoicesDecider);
const NOON = '2026-11-20T12:00:00.000Z';
const allowed = (topupId: string, expiresAt: string, at = NOON): InvoiceAllowed => ({
  type: 'InvoiceAllowed',
  data: { accountId: 'a', topupId, expiresAt, at },
});
const allow = (topupId: string, at = NOON) => ({
  type: 'AllowInvoice' as const,
  data: { accountId: 'a', topupId, expiresAt: '2026-11-20T14:00:00.000Z', maxOpenInvoices: 2, at },
});

test('an account at its maximum of open invoices gets another one only when one of them has expired', () => {
  const two = [allowed('t1', '2026-11-20T13:00:00.000Z'), allowed('t2', '2026-11-20T12:15:00.000Z')];
  given(...two)
    .when(allow('t3'))
    .thenRefused('too_many_invoices');
  given(...two)
    .when(allow('t3', '2026-11-20T12:14:59.999Z'))
    .thenRefused('too_many_invoices');
  const later = '2026-11-20T12:15:00.000Z';
  given(...two)
    .when(allow('t3', later))
    .then(allowed('t3', '2026-11-20T14:00:00.000Z', later));
});

test('an invoice that the payment backend did not create is not open', () => {
  const two = [allowed('t1', '2026-11-20T13:00:00.000Z'), allowed('t2', '2026-11-20T12:15:00.000Z')];
  const dropped: InvoiceDropped = { type: 'InvoiceDropped', data: { topupId: 't1', at: NOON } };
  given(...two)
    .when({ type: 'DropInvoice', data: dropped.data })
    .then(dropped);
  given(...two, dropped)
    .when(allow('t3'))
    .then(allowed('t3', '2026-11-20T14:00:00.000Z'));
  given(...two, dropped)
    .when({ type: 'DropInvoice', data: dropped.data })
    .thenAlreadySo();
});

test('allowing the same invoice again appends no event', () => {
  given(allowed('t1', '2026-11-20T14:00:00.000Z')).when(allow('t1')).thenAlreadySo();
});
