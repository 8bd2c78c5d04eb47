import type pg from 'pg';
import type { FoldProjection } from './projection.ts';

type HoldRow = {
  readonly hold_id: string;
  /** Name of the payer's stream. */
  readonly payer: string;
  readonly amount: string;
  /** The process that serves the request, or the stream of the job that the hold was transferred to. */
  readonly owner: string | null;
  readonly expires_at: string;
};

/** The read model of open holds. It is a hint for the expiry sweep and for metrics: the payer's stream decides. */
export const holds: FoldProjection<HoldRow> = {
  kind: 'fold',
  name: 'holds',
  version: 3,
  key: 'hold_id',
  createdBy: 'FundsHeld',
  columns: ['hold_id', 'payer', 'amount', 'owner', 'expires_at'],
  migrations: [
    {
      id: 'holds-1',
      sql: `create table books.holds (
              hold_id    text primary key,
              account_id uuid not null,
              amount     numeric(38, 0) not null,
              expires_at timestamptz not null
            );
            create index on books.holds (expires_at);`,
    },
    {
      id: 'holds-2',
      // No index on the owner: it would slow down every hold, and is only needed after a process has died.
      sql: 'alter table books.holds add column owner text',
    },
    {
      id: 'holds-3',
      sql: `alter table books.holds rename column account_id to payer;
            alter table books.holds alter column payer type text using 'account-' || payer;`,
    },
  ],
  getKey(event) {
    switch (event.type) {
      case 'FundsHeld':
      case 'HoldExtended':
      case 'HoldKept':
      case 'HoldSettled':
      case 'HoldReleased':
      case 'HoldExpired':
        return event.data.holdId;
      default:
        return undefined;
    }
  },
  evolve(row, event) {
    if (event.type === 'HoldExtended') return row ? { ...row, amount: event.data.amount } : null;
    if (event.type === 'HoldKept')
      return row ? { ...row, owner: event.data.owner, expires_at: event.data.expiresAt } : null;
    if (event.type !== 'FundsHeld') return null;
    const { holdId, amount, owner = null, expiresAt } = event.data;
    return { hold_id: holdId, payer: event.stream, amount, owner, expires_at: expiresAt };
  },
};

/** Returns the stream names of the payers with a hold that has expired at `now`. */
export async function findPayersWithOverdueHolds(pool: pg.Pool, now: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ payer: string }>({
    name: 'overdue-holds',
    text: 'select distinct payer from books.holds where expires_at <= $1',
    values: [now],
  });
  return rows.map(({ payer }) => payer);
}

export interface HoldOwnerRef {
  /** Name of the payer's stream. */
  readonly payer: string;
  readonly owner: string;
}

/** Returns the payers with an open hold that one of `owners` owns, each with that owner. */
export async function findPayersByHoldOwner(
  pool: pg.Pool,
  owners: readonly string[],
): Promise<readonly HoldOwnerRef[]> {
  const { rows } = await pool.query<HoldOwnerRef>({
    name: 'holds-of-owners',
    text: 'select distinct payer, owner from books.holds where owner = any($1)',
    values: [owners],
  });
  return rows;
}
