import {
  addChargeToWindow,
  deriveChargeWindow,
  deriveReversalWindow,
  getStreamId,
  type LimitWindow,
  type ResetPeriod,
  startWindow,
} from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { FoldProjection } from './projection.ts';

export type KeyRow = {
  readonly key_id: string;
  readonly account_id: string;
  readonly name: string;
  readonly hash: string;
  readonly secret: { readonly key: string; readonly box: string };
  readonly usage_limit: string | null;
  readonly reset_period: ResetPeriod | null;
  readonly expire_at: string | null;
  /** The models, null for all of them, and settings of later versions without a column of their own. */
  readonly models: { readonly patterns: readonly string[] | null; readonly dedupeSeconds?: number } | null;
  readonly blocked: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  /** Id of the reset window in which `used` was counted. */
  readonly used_in: string;
  readonly used: string;
  readonly used_in_all: string;
  /**
   * Creation of the key or last change of its reset period. Charges of holds that were counted for the limit earlier do
   * not add to `used`, unless their event states a window.
   */
  readonly counts_from: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly deleted_at: string | null;
};

/** The read model of API keys, with their limits and their usage. */
export const keys: FoldProjection<KeyRow> = {
  kind: 'fold',
  name: 'keys',
  version: 1,
  key: 'key_id',
  columns: [
    'key_id',
    'account_id',
    'name',
    'hash',
    'secret',
    'usage_limit',
    'reset_period',
    'expire_at',
    'models',
    'blocked',
    'metadata',
    'used_in',
    'used',
    'used_in_all',
    'counts_from',
    'created_at',
    'updated_at',
    'deleted_at',
  ],
  migrations: [
    {
      id: 'keys-1',
      sql: `create table books.keys (
              key_id       text primary key,
              account_id   uuid not null,
              name         text not null,
              hash         text not null,
              secret       json not null,
              usage_limit  numeric(38, 0),
              reset_period text,
              expire_at    timestamptz,
              used_in      text not null,
              used         numeric(38, 0) not null,
              used_in_all  numeric(38, 0) not null,
              counts_from  timestamptz not null,
              created_at   timestamptz not null,
              updated_at   timestamptz not null,
              deleted_at   timestamptz
            ) with (fillfactor = 70);
            create index on books.keys (hash);
            create index on books.keys (account_id);`,
    },
    {
      id: 'keys-2',
      minContract: 1,
      changes: 'adds the models that an API key permits, whether it is blocked, and its tags',
      locks: [{ table: 'books.keys', blocks: 'reads and writes', millisecondsPerMillionRows: 0 }],
      sql: `alter table books.keys
              add column models   json,
              add column blocked  boolean not null default false,
              add column metadata json    not null default '{}'`,
    },
  ],
  getKey(event) {
    switch (event.type) {
      case 'KeyCreated':
      case 'KeyUpdated':
      case 'KeyRevoked':
        return event.data.keyId;
      case 'HoldSettled':
      case 'ChargeReversed':
        return event.data.keyId ?? undefined;
      default:
        return undefined;
    }
  },
  evolve(row, event) {
    if (event.type === 'KeyCreated') return createRow(getStreamId(event), event.data);
    if (!row) return null;
    switch (event.type) {
      case 'KeyUpdated':
        return updateRow(row, event.data);
      case 'KeyRevoked':
        return { ...row, deleted_at: event.data.at, updated_at: event.data.at };
      case 'HoldSettled':
        return applyCharge(row, event.data);
      case 'ChargeReversed':
        return reverseCharge(row, event.data);
      default:
        return row;
    }
  },
};

type Created = Extract<Parameters<typeof keys.evolve>[1], { type: 'KeyCreated' }>['data'];
type Settled = Extract<Parameters<typeof keys.evolve>[1], { type: 'HoldSettled' }>['data'];
type Reversed = Extract<Parameters<typeof keys.evolve>[1], { type: 'ChargeReversed' }>['data'];
type Updated = Extract<Parameters<typeof keys.evolve>[1], { type: 'KeyUpdated' }>['data'];

function createRow(account_id: string, { at, ...data }: Created): KeyRow {
  return {
    key_id: data.keyId,
    account_id,
    name: data.name,
    hash: data.hash,
    secret: data.secret,
    usage_limit: data.limit,
    expire_at: data.expireAt,
    models: toModelsColumn(data),
    blocked: data.blocked,
    metadata: data.metadata,
    ...toColumns(startWindow(data.resetPeriod, at)),
    used_in_all: '0',
    counts_from: at,
    created_at: at,
    updated_at: at,
    deleted_at: null,
  };
}

function updateRow(row: KeyRow, { at, ...changes }: Updated): KeyRow {
  const period = changes.resetPeriod === undefined ? row.reset_period : changes.resetPeriod;
  const restarted = period === row.reset_period ? {} : { ...toColumns(startWindow(period, at)), counts_from: at };
  return {
    ...row,
    name: changes.name ?? row.name,
    usage_limit: changes.limit === undefined ? row.usage_limit : changes.limit,
    expire_at: changes.expireAt === undefined ? row.expire_at : changes.expireAt,
    models: toModelsColumn({
      models: changes.models === undefined ? (row.models?.patterns ?? null) : changes.models,
      dedupeSeconds: changes.dedupeSeconds === undefined ? row.models?.dedupeSeconds : changes.dedupeSeconds,
    }),
    blocked: changes.blocked ?? row.blocked,
    metadata: changes.metadata ?? row.metadata,
    ...restarted,
    updated_at: at,
  };
}

function toModelsColumn({
  models: patterns,
  dedupeSeconds,
}: Pick<Created, 'models'> & { readonly dedupeSeconds?: number | null | undefined }): KeyRow['models'] {
  if (dedupeSeconds) return { patterns, dedupeSeconds };
  return patterns && { patterns };
}

function applyCharge(row: KeyRow, { heldAt, countedAt = heldAt, countedIn, charged }: Settled): KeyRow {
  const { reset_period: resetPeriod, counts_from: countsFrom } = row;
  const window = countedIn === undefined ? deriveChargeWindow({ resetPeriod, countsFrom }, countedAt) : countedIn;
  return addCharge(row, window, money.parseJsonAmount(charged));
}

function reverseCharge(row: KeyRow, reversed: Reversed): KeyRow {
  const { reset_period: resetPeriod, updated_at: updatedAt } = row;
  const window = deriveReversalWindow({ resetPeriod, updatedAt }, reversed);
  return addCharge(row, window, money.negate(money.parseJsonAmount(reversed.charged)));
}

/** @param window in which the amount counts; null: in none */
function addCharge(row: KeyRow, window: string | null, amount: PicoUsd): KeyRow {
  const used_in_all = (BigInt(row.used_in_all) + amount).toString();
  if (window === null) return { ...row, used_in_all };
  return { ...row, ...toColumns(addChargeToWindow(toLimitWindow(row), window, amount)), used_in_all };
}

export function toLimitWindow({ reset_period, used_in, used }: KeyRow): LimitWindow {
  return { resetPeriod: reset_period, window: used_in, used: money.parseJsonAmount(used) };
}

function toColumns({ resetPeriod, window, used }: LimitWindow): Pick<KeyRow, 'reset_period' | 'used_in' | 'used'> {
  return { reset_period: resetPeriod, used_in: window, used: money.toJsonAmount(used) };
}
