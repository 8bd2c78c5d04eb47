/**
 * The invoices of one account that have not expired. Each is a free option on the exchange rate that it guarantees, so
 * their number is limited. The limit is checked before a payment backend creates an invoice. If the backend certainly
 * created none, the invoice is dropped; if the outcome is unknown, it counts until its expiry.
 */
import { Map as ImmutableMap } from 'immutable';
import { type Decider, throwUnknownEvent } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type { InvoiceAllowed, InvoiceDropped, OpenInvoiceEvent } from './events.ts';

export interface AllowInvoice {
  readonly type: 'AllowInvoice';
  readonly data: InvoiceAllowed['data'] & {
    readonly maxOpenInvoices: number;
  };
}

/** The payment backend certainly did not create the invoice. */
export interface DropInvoice {
  readonly type: 'DropInvoice';
  readonly data: InvoiceDropped['data'];
}

export type OpenInvoiceCommand = AllowInvoice | DropInvoice;

/** Expiry times by top-up id. */
type OpenInvoices = ImmutableMap<string, Instant>;

function evolve(open: OpenInvoices, event: OpenInvoiceEvent): OpenInvoices {
  switch (event.type) {
    case 'InvoiceAllowed': {
      const { topupId, expiresAt, at } = event.data;
      return open.filter((end) => end > at).set(topupId, expiresAt);
    }
    case 'InvoiceDropped':
      return open.delete(event.data.topupId);
    default:
      return throwUnknownEvent(event);
  }
}

export const openInvoicesDecider: Decider<OpenInvoiceCommand, OpenInvoices, OpenInvoiceEvent> = {
  getInitialState: () => ImmutableMap(),
  evolve,
  decide(command, open) {
    const isOpen = open.has(command.data.topupId);
    switch (command.type) {
      case 'AllowInvoice':
        return isOpen ? [] : [allowInvoice(command, open)];
      case 'DropInvoice':
        return isOpen ? [{ type: 'InvoiceDropped', data: command.data }] : [];
      default:
        return command satisfies never;
    }
  },
};

function allowInvoice({ data: { maxOpenInvoices, ...data } }: AllowInvoice, open: OpenInvoices): InvoiceAllowed {
  const ends = [...open.values()].filter((end) => end > data.at).toSorted();
  if (ends.length >= maxOpenInvoices)
    reject('too_many_invoices', `The account has ${maxOpenInvoices} unexpired invoices; retry when one expires`, {
      until: ends[0] ?? '',
    });
  return { type: 'InvoiceAllowed', data };
}
