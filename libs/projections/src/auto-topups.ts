import type pg from 'pg';
import { AUTO_TOPUP, type AutoTopupEvent, type DomainEvent, getStreamId, type WalletConnected } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { type FoldProjection, foldRow, type ProjectedEvent, TEXT_TYPE_PARSERS } from './projection.ts';

const EVENT_TYPES: ReadonlySet<DomainEvent['type']> = new Set<AutoTopupEvent['type']>([
  'WalletConnected',
  'WalletDisconnected',
  'AutoTopupBegun',
  'AutoTopupInvoiced',
  'WalletAsked',
  'WalletRequestEnded',
  'WalletAnswered',
  'AutoTopupEnded',
  'AutoTopupPaused',
]);

/** The last step of an open attempt (`begun`, `invoiced`, `asked`), or the outcome of an ended one. */
type AttemptState = 'begun' | 'invoiced' | 'asked' | 'paid' | 'expired' | 'failed' | 'dropped';

type AutoTopupRow = {
  readonly account_id: string;
  /** Null if no wallet is connected. The table omits the secret of the wallet, because no view shows it. */
  readonly wallet: string | null;
  readonly relays: string | null;
  readonly threshold: string;
  readonly amount: string;
  readonly connected_at: string;
  readonly changed_at: string;
  readonly attempt: number;
  readonly attempt_topup: string | null;
  readonly attempt_amount: string | null;
  readonly attempt_state: AttemptState | null;
  readonly attempt_requests: number;
  readonly attempt_at: string | null;
  readonly attempt_ended_at: string | null;
  readonly paid_at: string | null;
  readonly paused_code: string | null;
  readonly paused_until: string | null;
  readonly error_code: string | null;
  readonly error: string | null;
  readonly error_at: string | null;
};

const NO_ERROR = { paused_code: null, paused_until: null, error_code: null, error: null, error_at: null };

/** The read model of automatic top-ups: the wallet and the last attempt of each account. */
export const autoTopups: FoldProjection<AutoTopupRow> = {
  kind: 'fold',
  name: 'autotopups',
  version: 1,
  key: 'account_id',
  columns: [
    'account_id',
    'wallet',
    'relays',
    'threshold',
    'amount',
    'connected_at',
    'changed_at',
    'attempt',
    'attempt_topup',
    'attempt_amount',
    'attempt_state',
    'attempt_requests',
    'attempt_at',
    'attempt_ended_at',
    'paid_at',
    'paused_code',
    'paused_until',
    'error_code',
    'error',
    'error_at',
  ],
  migrations: [
    {
      id: 'autotopups-1',
      sql: `create table books.autotopups (
              account_id       uuid primary key,
              wallet           text,
              relays           text,
              threshold        numeric(38, 0) not null,
              amount           numeric(38, 0) not null,
              connected_at     timestamptz not null,
              changed_at       timestamptz not null,
              attempt          integer not null,
              attempt_topup    text,
              attempt_amount   numeric(38, 0),
              attempt_state    text,
              attempt_requests integer not null,
              attempt_at       timestamptz,
              attempt_ended_at timestamptz,
              paid_at          timestamptz,
              paused_code      text,
              paused_until     timestamptz,
              error_code       text,
              error            text,
              error_at         timestamptz
            );`,
    },
  ],
  getKey: (event) =>
    EVENT_TYPES.has(event.type) && event.stream.startsWith(`${AUTO_TOPUP}-`) ? getStreamId(event) : undefined,
  evolve(row, event) {
    if (event.type === 'WalletConnected') return applyWalletConnected(row, getStreamId(event), event.data);
    if (!row) return null;
    return evolveRow(row, event as AutoTopupEvent);
  },
};

function applyWalletConnected(
  row: AutoTopupRow | undefined,
  account_id: string,
  data: WalletConnected['data'],
): AutoTopupRow {
  const { wallet, threshold, amount, at } = data;
  const walletFields = { account_id, wallet: wallet.pubkey, relays: JSON.stringify(wallet.relays) };
  const since = { connected_at: at, changed_at: at };
  const none = {
    attempt: 0,
    attempt_topup: null,
    attempt_amount: null,
    attempt_state: null,
    attempt_requests: 0,
    attempt_at: null,
    attempt_ended_at: null,
    paid_at: null,
  };
  return { ...none, ...row, ...walletFields, threshold, amount, ...since, ...NO_ERROR };
}

function evolveRow(row: AutoTopupRow, { type, data }: AutoTopupEvent): AutoTopupRow {
  switch (type) {
    case 'WalletDisconnected':
      return { ...row, wallet: null, relays: null, changed_at: data.at, ...NO_ERROR };
    case 'AutoTopupBegun': {
      const { attempt, topupId, amount, at } = data;
      return {
        ...row,
        attempt,
        attempt_topup: topupId,
        attempt_amount: amount,
        attempt_state: 'begun',
        attempt_requests: 0,
        attempt_at: at,
        attempt_ended_at: null,
      };
    }
    case 'AutoTopupInvoiced':
      return { ...row, attempt_state: 'invoiced' };
    case 'WalletAsked':
      return { ...row, attempt_state: 'asked', attempt_requests: data.request };
    case 'WalletRequestEnded':
      if (data.outcome === 'sent') return row;
      return { ...row, error_code: 'UNREACHED', error: data.why ?? null, error_at: data.at };
    case 'WalletAnswered':
      if (data.code === 'PAID') return row;
      return { ...row, error_code: data.code, error: data.why ?? data.code, error_at: data.at };
    case 'AutoTopupPaused':
      return {
        ...row,
        paused_code: data.code,
        paused_until: data.until,
        error_code: data.code,
        error: data.why,
        error_at: data.at,
      };
    case 'AutoTopupEnded':
      return applyAttemptEnded(row, data);
    default:
      return row;
  }
}

function applyAttemptEnded(
  row: AutoTopupRow,
  { outcome, why, at }: Extract<AutoTopupEvent, { type: 'AutoTopupEnded' }>['data'],
): AutoTopupRow {
  const endedRow = { ...row, attempt_state: outcome, attempt_ended_at: at };
  if (outcome === 'paid') return { ...endedRow, paid_at: at, ...NO_ERROR };
  return outcome === 'failed' ? { ...endedRow, error_code: 'FAILED', error: why ?? null, error_at: at } : endedRow;
}

export interface AutoTopupView {
  /** Undefined after the wallet was disconnected. */
  readonly wallet: { readonly pubkey: string; readonly relays: readonly string[] } | undefined;
  readonly threshold: PicoUsd;
  readonly amount: PicoUsd;
  readonly connectedAt: string;
  readonly changedAt: string;
  /** The last attempt. */
  readonly attempt:
    | {
        readonly topupId: string;
        readonly amount: PicoUsd;
        readonly state: AttemptState;
        /** Number of payment requests to the wallet, including those that could not be sent. */
        readonly requests: number;
        readonly at: string;
        readonly endedAt: string | null;
      }
    | undefined;
  readonly paidAt: string | null;
  readonly paused: { readonly code: string; readonly until: string } | undefined;
  readonly error: { readonly code: string; readonly message: string; readonly at: string } | undefined;
}

/** @returns undefined if no wallet was ever connected */
export async function readAutoTopup(pool: pg.Pool, accountId: string): Promise<AutoTopupView | undefined> {
  const { rows } = await pool.query<AutoTopupRow>({
    name: 'read-autotopup',
    text: 'select * from books.autotopups where account_id = $1',
    values: [accountId],
    types: TEXT_TYPE_PARSERS,
  });
  return rows[0] && toView(rows[0]);
}

/**
 * Builds the view from the stream of the account's automatic top-ups, for callers that must not see a lagging read
 * model.
 */
export function foldAutoTopup(events: readonly ProjectedEvent[]): AutoTopupView | undefined {
  const row = foldRow(autoTopups, events);
  return row && toView(row);
}

function toView(row: AutoTopupRow): AutoTopupView {
  const { wallet, attempt_topup, attempt_amount, attempt_state, attempt_at, paused_code, paused_until } = row;
  const hasAttempt = attempt_topup !== null && attempt_amount !== null && attempt_state !== null && attempt_at !== null;
  const failed = row.error_code !== null && row.error_at !== null;
  return {
    wallet: wallet === null ? undefined : { pubkey: wallet, relays: JSON.parse(row.relays ?? '[]') },
    threshold: money.parseJsonAmount(row.threshold),
    amount: money.parseJsonAmount(row.amount),
    connectedAt: row.connected_at,
    changedAt: row.changed_at,
    attempt: hasAttempt
      ? {
          topupId: attempt_topup,
          amount: money.parseJsonAmount(attempt_amount),
          state: attempt_state,
          requests: row.attempt_requests,
          at: attempt_at,
          endedAt: row.attempt_ended_at,
        }
      : undefined,
    paidAt: row.paid_at,
    paused: paused_code !== null && paused_until !== null ? { code: paused_code, until: paused_until } : undefined,
    error: failed
      ? { code: row.error_code ?? '', message: row.error ?? row.error_code ?? '', at: row.error_at ?? '' }
      : undefined,
  };
}
