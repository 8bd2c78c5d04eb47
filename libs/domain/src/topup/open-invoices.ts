/**
 * The invoices of one account whose time has not run out. Each is a free option on the exchange rate that it is locked at,
 * so their number is bounded, and decided on before a back end is asked for one.
 */
import { type Decider, PersistentMap, throwUnknownEvent } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type { InvoiceAllowed } from './events.ts';

export interface AllowInvoice {
  readonly type: 'AllowInvoice';
  readonly data: InvoiceAllowed['data'] & {
    /** How many there may be. */
    readonly maxOpenInvoices: number;
  };
}

/** When they expire, by the ids of their top-ups. */
type OpenInvoices = PersistentMap<Instant>;

function evolve(open: OpenInvoices, event: InvoiceAllowed): OpenInvoices {
  if (event.type !== 'InvoiceAllowed') return throwUnknownEvent(event as never);
  const { topupId, expiresAt, at } = event.data;
  return PersistentMap.from([...open.entries()].filter(([, end]) => end > at)).with(topupId, expiresAt);
}

export const openInvoicesDecider: Decider<AllowInvoice, OpenInvoices, InvoiceAllowed> = {
  getInitialState: () => PersistentMap.empty(),
  evolve,
  decide({ data: { maxOpenInvoices, ...data } }, open) {
    if (open.has(data.topupId)) return [];
    const ends = [...open.values()].filter((end) => end > data.at).toSorted();
    if (ends.length >= maxOpenInvoices)
      reject('too_many_invoices', `The account has ${maxOpenInvoices} invoices that have not expired`, {
        until: ends[0] ?? '',
      });
    return [{ type: 'InvoiceAllowed', data }];
  },
};
