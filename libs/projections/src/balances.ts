import type pg from 'pg';
import { ACCOUNT, getStreamId, toPostings } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { FoldProjection } from './projection.ts';

type BalanceRow = {
  readonly account_id: string;
  /** Pico-USD. */
  readonly available: string;
  readonly held: string;
  readonly opened_at: string;
  /** Given by the operator; unique. */
  readonly name: string | null;
};

/** The read model of balances: the available and the held amount of each account, from its postings. */
export const balances: FoldProjection<BalanceRow> = {
  kind: 'fold',
  name: 'balances',
  version: 1,
  key: 'account_id',
  columns: ['account_id', 'available', 'held', 'opened_at', 'name'],
  migrations: [
    {
      id: 'balances-1',
      sql: `create table books.balances (
              account_id uuid primary key,
              available  numeric(38, 0) not null,
              held       numeric(38, 0) not null,
              opened_at  timestamptz not null
            ) with (fillfactor = 70)`,
    },
    {
      id: 'balances-2',
      minContract: 1,
      changes: 'adds the name of an account',
      locks: [{ table: 'books.balances', blocks: 'reads and writes', millisecondsPerMillionRows: 0 }],
      sql: 'alter table books.balances add column name text',
    },
  ],
  // Only accounts have rows here, so a row proves that its id is an account's.
  getKey(event) {
    if (event.type === 'AccountNamed') return event.data.accountId;
    return event.stream.startsWith(`${ACCOUNT}-`) &&
      (event.type === 'AccountOpened' || toPostings(event.stream, event).some(({ customer }) => customer !== null))
      ? getStreamId(event)
      : undefined;
  },
  evolve(row, event) {
    if (event.type === 'AccountNamed') return row ? { ...row, name: event.data.name } : null;
    const account_id = getStreamId(event);
    const opened_at = row?.opened_at ?? (event.type === 'AccountOpened' ? event.data.at : event.recordedAt);
    let available = BigInt(row?.available ?? 0);
    let held = BigInt(row?.held ?? 0);
    for (const { account, amount } of toPostings(event.stream, event)) {
      if (account === 'customer:available') available -= amount; // a liability: credits are negative
      if (account === 'customer:held') held -= amount;
    }
    const name = row?.name ?? null;
    return { account_id, available: available.toString(), held: held.toString(), opened_at, name };
  },
};

export interface Balance {
  readonly available: PicoUsd;
  readonly held: PicoUsd;
}

export async function readBalance(pool: pg.Pool, accountId: string): Promise<Balance | undefined> {
  const { rows } = await pool.query<{ available: string; held: string }>({
    name: 'read-balance',
    text: 'select available, held from books.balances where account_id = $1',
    values: [accountId],
  });
  return rows[0] && { available: money.parseJsonAmount(rows[0].available), held: money.parseJsonAmount(rows[0].held) };
}
