/**
 * The invoices of one account that have not expired. Each is a free option on the exchange rate that it guarantees, so
 * their number is limited. The limit is checked before a payment backend creates an invoice.
 */
import { Map as ImmutableMap } from 'immutable';
import { type Decider, throwUnknownEvent } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type { InvoiceAllowed } from './events.ts';

export interface AllowInvoice {
  readonly type: 'AllowInvoice';
  readonly data: InvoiceAllowed['data'] & {
    readonly maxOpenInvoices: number;
  };
}

/** Expiry times by top-up id. */
type OpenInvoices = ImmutableMap<string, Instant>;

function evolve(open: OpenInvoices, event: InvoiceAllowed): OpenInvoices {
  if (event.type !== 'InvoiceAllowed') return throwUnknownEvent(event as never);
  const { topupId, expiresAt, at } = event.data;
  return open.filter((end) => end > at).set(topupId, expiresAt);
}

export const openInvoicesDecider: Decider<AllowInvoice, OpenInvoices, InvoiceAllowed> = {
  getInitialState: () => ImmutableMap(),
  evolve,
  decide({ data: { maxOpenInvoices, ...data } }, open) {
    if (open.has(data.topupId)) return [];
    const ends = [...open.values()].filter((end) => end > data.at).toSorted();
    if (ends.length >= maxOpenInvoices)
      reject('too_many_invoices', `The account has ${maxOpenInvoices} unexpired invoices; retry when one expires`, {
        until: ends[0] ?? '',
      });
    return [{ type: 'InvoiceAllowed', data }];
  },
};
