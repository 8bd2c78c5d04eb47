/** Reads of the read model of API keys. */
import type pg from 'pg';
import { type ApiKeyRecord, advanceWindow, getNextReset, type KeyAccess } from '#domain';
import { money } from '#kernel';
import { type KeyRow, toLimitWindow } from './keys.ts';
import { TEXT_TYPE_PARSERS } from './projection.ts';

/** An API key as its owner sees it, with its sealed secret. */
export interface KeyView extends ApiKeyRecord {
  readonly accountId: string;
  readonly secret: { readonly key: string; readonly box: string };
}

function toView(row: KeyRow, now: string): KeyView {
  return {
    keyId: row.key_id,
    accountId: row.account_id,
    name: row.name,
    secret: row.secret,
    limit: row.usage_limit === null ? null : money.parseJsonAmount(row.usage_limit),
    usedInPeriod: advanceWindow(now, toLimitWindow(row)).used,
    usedInAll: money.parseJsonAmount(row.used_in_all),
    resetPeriod: row.reset_period,
    resetAt: getNextReset(row.reset_period, now),
    expireAt: row.expire_at,
    models: row.models?.patterns ?? null,
    blocked: row.blocked,
    metadata: row.metadata,
    dedupeSeconds: row.models?.dedupeSeconds ?? null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revokedAt: row.deleted_at,
  };
}

const KEY_BATCH_SIZE = 1_000;

/** Selects one page of the keys of an account. */
export interface KeyPageFilter {
  readonly includesRevoked: boolean;
  /** 1 is the first page. */
  readonly page: number;
  readonly size: number;
}

export interface KeyPage {
  readonly keys: readonly KeyView[];
  /** Number of keys on all pages. */
  readonly total: number;
}

/** Returns a page of the keys of an account, oldest first. */
export async function readKeys(
  pool: pg.Pool,
  accountId: string,
  { includesRevoked, page, size }: KeyPageFilter,
  now: string,
): Promise<KeyPage> {
  const where = 'where account_id = $1 and ($2 or deleted_at is null)';
  const { rows } = await pool.query<KeyRow>({
    name: 'read-keys',
    text: `select * from books.keys ${where} order by created_at, key_id limit $3 offset $4`,
    values: [accountId, includesRevoked, size, (page - 1) * size],
    types: TEXT_TYPE_PARSERS,
  });
  const keys = rows.map((row) => toView(row, now));
  if (page === 1 && keys.length < size) return { keys, total: keys.length };
  const countResult = await pool.query<{ total: number }>({
    name: 'count-keys',
    text: `select count(*)::int as total from books.keys ${where}`,
    values: [accountId, includesRevoked],
  });
  return { keys, total: countResult.rows[0]?.total ?? 0 };
}

/**
 * Yields the keys that are not revoked, with the names of their accounts, by account and age.
 * @param accountId undefined: the keys of all accounts with a name
 */
export async function* readAllKeys(
  pool: pg.Pool,
  accountId: string | undefined,
  now: string,
): AsyncGenerator<KeyView & { readonly accountName: string | null }> {
  let after = ['', ''];
  for (;;) {
    const { rows } = await pool.query<KeyRow & { readonly account_name: string | null; readonly sort_key: string }>({
      name: 'read-all-keys',
      text: `select keys.*, balances.name as account_name, account_id || ' ' || keys.created_at as sort_key
               from books.keys join books.balances using (account_id)
              where deleted_at is null and ($1::uuid is null and balances.name is not null or account_id = $1)
                and (account_id || ' ' || keys.created_at, key_id) > ($2, $3)
              order by sort_key, key_id limit ${KEY_BATCH_SIZE}`,
      values: [accountId, ...after],
      types: TEXT_TYPE_PARSERS,
    });
    for (const row of rows) yield { ...toView(row, now), accountName: row.account_name };
    const last = rows.at(-1);
    if (last === undefined || rows.length < KEY_BATCH_SIZE) return;
    after = [last.sort_key, last.key_id];
  }
}

export async function readKey(
  pool: pg.Pool,
  accountId: string,
  keyId: string,
  now: string,
): Promise<KeyView | undefined> {
  const { rows } = await pool.query<KeyRow>({
    name: 'read-key',
    text: 'select * from books.keys where account_id = $1 and key_id = $2',
    values: [accountId, keyId],
    types: TEXT_TYPE_PARSERS,
  });
  return rows[0] && toView(rows[0], now);
}

/**
 * Returns the owner of the key with one of these hashes, even if it is revoked, expired or blocked: the caller decides
 * whether the key may be used.
 * @param hashes the keyed hashes of one secret, one for each master key
 */
export async function findKeyOwner(pool: pg.Pool, hashes: readonly string[]): Promise<KeyOwner | undefined> {
  const { rows } = await pool.query<KeyOwnerRow>({
    name: 'find-key',
    text: 'select key_id, account_id, deleted_at, expire_at, models, blocked from books.keys where hash = any($1)',
    values: [hashes],
    types: TEXT_TYPE_PARSERS,
  });
  const [row] = rows;
  return (
    row && {
      keyId: row.key_id,
      accountId: row.account_id,
      revoked: row.deleted_at !== null,
      expireAt: row.expire_at,
      models: row.models?.patterns ?? null,
      blocked: row.blocked,
    }
  );
}

type KeyOwnerRow = Pick<KeyRow, 'key_id' | 'account_id' | 'deleted_at' | 'expire_at' | 'models' | 'blocked'>;

export interface KeyOwner extends Pick<KeyAccess, 'models' | 'blocked'> {
  readonly keyId: string;
  readonly accountId: string;
  readonly revoked: boolean;
  readonly expireAt: string | null;
}
