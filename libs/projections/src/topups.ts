import type pg from 'pg';
import { idOf } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { asWritten, type FoldProjection } from './projection.ts';

type TopupRow = {
  readonly topup_id: string;
  readonly account_id: string;
  readonly method: string;
  readonly amount: string;
  readonly currency: string;
  readonly usd: string;
  readonly rate: string;
  readonly msat: string;
  readonly payment_hash: string;
  readonly invoice: string;
  readonly created_at: string;
  readonly expires_at: string;
  readonly paid_msat: string;
  readonly credited: string;
  /** Received and not yet credited. */
  readonly pending: number;
};

/** Invoices and what was paid on them. */
export const topups: FoldProjection<TopupRow> = {
  kind: 'fold',
  name: 'topups',
  key: 'topup_id',
  columns: [
    'topup_id',
    'account_id',
    'method',
    'amount',
    'currency',
    'usd',
    'rate',
    'msat',
    'payment_hash',
    'invoice',
    'created_at',
    'expires_at',
    'paid_msat',
    'credited',
    'pending',
  ],
  migrations: [
    {
      id: 'topups-1',
      sql: `create table books.topups (
              topup_id     text primary key,
              account_id   uuid not null,
              method       text not null,
              amount       text not null,
              currency     text not null,
              usd          numeric(38, 0) not null,
              rate         text not null,
              msat         numeric(38, 0) not null,
              payment_hash text not null,
              invoice      text not null,
              created_at   timestamptz not null,
              expires_at   timestamptz not null,
              paid_msat    numeric(38, 0) not null,
              credited     numeric(38, 0) not null,
              pending      integer not null
            );
            create unique index on books.topups (payment_hash);
            create index on books.topups (expires_at) where paid_msat = 0;`,
    },
  ],
  keyOf: (fact) =>
    fact.type === 'InvoiceIssued' || fact.type === 'PaymentReceived' || fact.type === 'TopupCredited'
      ? idOf(fact)
      : undefined,
  evolve(row, fact) {
    if (fact.type === 'InvoiceIssued') {
      const { data } = fact;
      return {
        topup_id: idOf(fact),
        account_id: data.accountId,
        method: data.method,
        amount: data.requested.amount,
        currency: data.requested.currency,
        usd: data.usd,
        rate: data.rate,
        msat: data.msat,
        payment_hash: data.paymentHash,
        invoice: data.invoice,
        created_at: data.at,
        expires_at: data.expiresAt,
        paid_msat: '0',
        credited: '0',
        pending: 0,
      };
    }
    if (!row) return null;
    if (fact.type === 'PaymentReceived') {
      const { msat, amount, bonus } = fact.data;
      const paid_msat = (BigInt(row.paid_msat) + BigInt(msat)).toString();
      const credited = (BigInt(row.credited) + BigInt(amount) + BigInt(bonus)).toString();
      return { ...row, paid_msat, credited, pending: row.pending + 1 };
    }
    return fact.type === 'TopupCredited' ? { ...row, pending: row.pending - 1 } : row;
  },
};

export type TopupStatus = 'New' | 'Processing' | 'Settled' | 'Expired';

export interface TopupView {
  readonly topupId: string;
  readonly accountId: string;
  readonly method: string;
  readonly amount: string;
  readonly currency: string;
  readonly msat: bigint;
  readonly paidMsat: bigint;
  readonly invoice: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly credited: PicoUsd;
  /** `Settled` only once the credit is in the balance, `Expired` by the clock. */
  readonly status: TopupStatus;
}

export async function readTopup(pool: pg.Pool, topupId: string, now: string): Promise<TopupView | undefined> {
  const { rows } = await pool.query<TopupRow>({
    name: 'read-topup',
    text: 'select * from books.topups where topup_id = $1',
    values: [topupId],
    types: asWritten,
  });
  return rows[0] && viewOf(rows[0], now);
}

/** An invoice that may still be paid. */
export interface OpenInvoice {
  readonly topupId: string;
  readonly paymentHash: string;
  readonly expiresAt: string;
}

/** Invoices without a payment that expire, or expired, after `since`. */
export async function readOpenInvoices(pool: pg.Pool, since: string): Promise<readonly OpenInvoice[]> {
  const { rows } = await pool.query<TopupRow>({
    name: 'read-open-invoices',
    text: 'select * from books.topups where paid_msat = 0 and expires_at > $1 order by expires_at',
    values: [since],
    types: asWritten,
  });
  return rows.map(openInvoice);
}

export async function findOpenInvoice(pool: pg.Pool, paymentHash: string): Promise<OpenInvoice | undefined> {
  const { rows } = await pool.query<TopupRow>({
    name: 'find-open-invoice',
    text: 'select * from books.topups where payment_hash = $1 and paid_msat = 0',
    values: [paymentHash],
    types: asWritten,
  });
  return rows.map(openInvoice)[0];
}

function openInvoice(row: TopupRow): OpenInvoice {
  return { topupId: row.topup_id, paymentHash: row.payment_hash, expiresAt: row.expires_at };
}

function viewOf(row: TopupRow, now: string): TopupView {
  return {
    topupId: row.topup_id,
    accountId: row.account_id,
    method: row.method,
    amount: row.amount,
    currency: row.currency,
    msat: BigInt(row.msat),
    paidMsat: BigInt(row.paid_msat),
    invoice: row.invoice,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    credited: money.fromJson(row.credited),
    status: statusOf(row, now),
  };
}

function statusOf(row: TopupRow, now: string): TopupStatus {
  if (row.pending > 0) return 'Processing';
  if (BigInt(row.paid_msat) > 0n) return 'Settled';
  return row.expires_at <= now ? 'Expired' : 'New';
}
