import type pg from 'pg';
import {
  type Coin,
  type Destination,
  type DomainEvent,
  getStreamId,
  type InvoiceIssued,
  type PaymentId,
  type TopupEvent,
} from '#domain';
import { money, type PicoUsd } from '#kernel';
import { type FoldProjection, foldRow, type ProjectedEvent } from './projection.ts';

const TOPUP_EVENT_TYPES: ReadonlySet<DomainEvent['type']> = new Set<TopupEvent['type']>([
  'InvoiceIssued',
  'PaymentSeen',
  'PaymentLost',
  'PaymentReceived',
  'TopupCredited',
  'ExcessCredited',
  'PaymentReversed',
]);

type TopupRow = {
  readonly topup_id: string;
  readonly account_id: string;
  readonly method: string;
  readonly coin: Coin;
  readonly amount: string;
  readonly currency: string;
  readonly usd: string;
  /** In the coin's smallest unit, like all units in this table. */
  readonly units: string;
  readonly backend: string;
  readonly reference: string;
  readonly destination_kind: Destination['kind'];
  readonly destination: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** Payments that were observed and are not final yet, each preceded by a space. */
  readonly seen: string;
  readonly paid_units: string;
  readonly reversed_units: string;
  readonly credited: string;
  /** Number of received payments that are not credited yet. */
  readonly pending: number;
};

/** The read model of top-ups: their invoices and payments. */
export const topups: FoldProjection<TopupRow> = {
  kind: 'fold',
  name: 'topups',
  version: 3,
  key: 'topup_id',
  columns: [
    'topup_id',
    'account_id',
    'method',
    'coin',
    'amount',
    'currency',
    'usd',
    'units',
    'backend',
    'reference',
    'destination_kind',
    'destination',
    'created_at',
    'expires_at',
    'seen',
    'paid_units',
    'reversed_units',
    'credited',
    'pending',
  ],
  migrations: [
    {
      // The previous table only supported Lightning. Deleting its checkpoint makes the projector fill the new table.
      id: 'topups-2',
      sql: `drop table if exists books.topups;
            delete from books.checkpoints where projection = 'topups';
            create table books.topups (
              topup_id         text primary key,
              account_id       uuid not null,
              method           text not null,
              coin             text not null,
              amount           text not null,
              currency         text not null,
              usd              numeric(38, 0) not null,
              units            numeric(38, 0) not null,
              backend          text not null,
              reference        text not null,
              destination_kind text not null,
              destination      text not null,
              created_at       timestamptz not null,
              expires_at       timestamptz not null,
              seen             boolean not null,
              paid_units       numeric(38, 0) not null,
              reversed_units   numeric(38, 0) not null,
              credited         numeric(38, 0) not null,
              pending          integer not null
            );
            create unique index on books.topups (backend, reference);`,
    },
    {
      id: 'topups-3',
      sql: `alter table books.topups drop column seen;
            alter table books.topups add column seen text not null default '';`,
    },
  ],
  getKey: (event) => (TOPUP_EVENT_TYPES.has(event.type) ? getStreamId(event) : undefined),
  evolve(row, event) {
    if (event.type === 'InvoiceIssued') return createRow(getStreamId(event), event.data);
    if (!row) return null;
    switch (event.type) {
      case 'PaymentSeen':
        return {
          ...row,
          seen: `${removePayment(row.seen, event.data.payment)}${formatSeenPayment(event.data.payment)}`,
        };
      case 'PaymentLost':
        return { ...row, seen: removePayment(row.seen, event.data.payment) };
      case 'PaymentReceived': {
        const { units, amount, bonus, payment } = event.data;
        return {
          ...row,
          paid_units: sum(row.paid_units, units),
          credited: sum(row.credited, amount, bonus),
          seen: removePayment(row.seen, payment),
          pending: row.pending + 1,
        };
      }
      case 'TopupCredited':
        return { ...row, pending: row.pending - 1 };
      case 'ExcessCredited':
        return { ...row, credited: sum(row.credited, event.data.amount) };
      case 'PaymentReversed': {
        const { units, amount, bonus } = event.data;
        const reversed_units = sum(row.reversed_units, units);
        return { ...row, reversed_units, credited: sum(row.credited, amount, bonus) };
      }
      default:
        return row;
    }
  },
};

function formatSeenPayment({ backend, id }: PaymentId): string {
  return ` ${backend}/${id}`;
}

function removePayment(seenPayments: string, payment: PaymentId): string {
  return `${seenPayments} `.replace(`${formatSeenPayment(payment)} `, ' ').trimEnd();
}

function createRow(topup_id: string, data: InvoiceIssued['data']): TopupRow {
  return {
    topup_id,
    account_id: data.accountId,
    method: data.method,
    coin: data.coin,
    amount: data.requested.amount,
    currency: data.requested.currency,
    usd: data.usd,
    units: data.units,
    backend: data.backend,
    reference: data.reference,
    destination_kind: data.destination.kind,
    destination: data.destination.value,
    created_at: data.at,
    expires_at: data.expiresAt,
    seen: '',
    paid_units: '0',
    reversed_units: '0',
    credited: '0',
    pending: 0,
  };
}

function sum(...amounts: readonly string[]): string {
  return amounts.reduce((total, amount) => total + BigInt(amount), 0n).toString();
}

export type TopupStatus = 'New' | 'Processing' | 'Settled' | 'Expired' | 'Invalid';

export interface TopupView {
  readonly topupId: string;
  readonly accountId: string;
  readonly method: string;
  readonly coin: Coin;
  readonly requested: InvoiceIssued['data']['requested'];
  readonly units: bigint;
  readonly paidUnits: bigint;
  readonly destination: Destination;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly credited: PicoUsd;
  /**
   * `Processing` while a received payment is not credited. `Settled` once the full requested amount is credited, even
   * after the expiry; before that `Processing` while a payment is not final. `Invalid` if all payments were reversed.
   * Any other top-up is `New` until it has expired, even if it is partly paid.
   */
  readonly status: TopupStatus;
}

/**
 * Builds the view of a top-up from the few events of its stream, so that a customer who has paid does not wait for a
 * read model.
 * @returns undefined if there are no events
 */
export function foldTopup(events: readonly ProjectedEvent[], now: string): TopupView | undefined {
  const row = foldRow(topups, events);
  return row && toView(row, now);
}

/** Returns the ids of the top-ups of a payment backend by reference. */
export async function findTopupIds(
  pool: pg.Pool,
  backend: string,
  references: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<Pick<TopupRow, 'topup_id' | 'reference'>>({
    name: 'find-topups',
    text: 'select topup_id, reference from books.topups where backend = $1 and reference = any($2)',
    values: [backend, references],
  });
  return new Map(rows.map(({ topup_id, reference }) => [reference, topup_id]));
}

function toView(row: TopupRow, now: string): TopupView {
  return {
    topupId: row.topup_id,
    accountId: row.account_id,
    method: row.method,
    coin: row.coin,
    requested: { amount: row.amount, currency: row.currency },
    units: BigInt(row.units),
    paidUnits: BigInt(row.paid_units) + BigInt(row.reversed_units),
    destination: { kind: row.destination_kind, value: row.destination },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    credited: money.parseJsonAmount(row.credited),
    status: getStatus(row, now),
  };
}

function getStatus(row: TopupRow, now: string): TopupStatus {
  if (row.pending > 0) return 'Processing';
  const paid = BigInt(row.paid_units);
  if (paid > 0n && paid + BigInt(row.reversed_units) <= 0n) return 'Invalid';
  if (paid >= BigInt(row.units)) return 'Settled';
  if (row.seen !== '') return 'Processing';
  return row.expires_at <= now ? 'Expired' : 'New';
}
