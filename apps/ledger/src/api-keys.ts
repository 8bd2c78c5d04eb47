/** API keys that the operator creates, lists and blocks. */
import type pg from 'pg';
import { generateApiKey, InvalidRequestError, resolvePermittedModels } from '#application';
import { readCatalogue } from '#catalogue';
import { type KeyUpdated, parseInstant, RESET_PERIODS, type ResetPeriod } from '#domain';
import { type Foundation, StartError } from '#foundation';
import { formatUsd, money, parseUsd } from '#kernel';
import { type KeyView, readAllKeys, readKey } from '#projections';
import { findAccount, READ_MODELS_LAG, waitForReadModels } from './find-account.ts';
import { type Operator, withOperator } from './operator.ts';
import { runAsOperator } from './run-as-operator.ts';
import { defineTable } from './table.ts';
import { withPool } from './with-pool.ts';

type Print = (line: string) => void;

export interface NewKeyOptions {
  readonly account: string;
  readonly name: string;
  readonly actor?: string | undefined;
  /** USD. */
  readonly limit?: string | undefined;
  readonly reset?: string | undefined;
  readonly expires?: string | undefined;
  /** Separated by commas. */
  readonly models?: string | undefined;
  /** Such as `team=search,cost-centre=4711`. */
  readonly tags?: string | undefined;
}

const LIMIT = /^\d{1,10}(\.\d{1,12})?$/;

/**
 * Creates an API key and prints only its secret, so that a shell can read it.
 * @throws StartError if the account does not exist, an option is invalid, or the name is taken in the account
 */
export async function createApiKey(foundation: Foundation, options: NewKeyOptions, print: Print): Promise<void> {
  const { name, limit, reset, expires, models, tags } = options;
  const settings = {
    name,
    limit: limit === undefined ? null : parseLimit(limit),
    resetPeriod: reset === undefined ? null : parseResetPeriod(reset),
    expireAt: expires === undefined ? null : parseExpiry(expires),
    ...(models === undefined ? {} : { models: parseModels(models, foundation) }),
    ...(tags === undefined ? {} : { metadata: parseTags(tags) }),
  };
  const { id: accountId } = await findAccount(foundation, options.account);
  await withOperator(foundation, options.actor, async ({ streams, secrets, actor }) => {
    const { apiKey, key } = generateApiKey(secrets, settings);
    const command = { type: 'CreateKey', data: { key, at: new Date().toISOString() } } as const;
    await runAsOperator(streams.accounts, accountId, command, { actor }).catch(throwWithOptions);
    print(apiKey);
  });
}

/** Names the options of the command instead of the fields of the API. */
function throwWithOptions(error: unknown): never {
  if (!(error instanceof StartError)) throw error;
  const fields = { usage_limit_usd: '--limit', reset_period: '--reset', expire_at: '--expires' };
  throw new StartError(
    Object.entries(fields).reduce((message, [field, option]) => message.replaceAll(field, option), error.message),
  );
}

function parseLimit(limit: string): string {
  if (!LIMIT.test(limit)) throw new StartError('--limit must be an amount in USD with at most 12 decimal places.');
  return money.toJsonAmount(parseUsd(limit));
}

function parseResetPeriod(reset: string): ResetPeriod {
  const period = RESET_PERIODS.find((candidate) => candidate === reset);
  return period ?? throwStartError(`--reset must be one of ${RESET_PERIODS.join(', ')}.`);
}

function parseExpiry(expires: string): string {
  return parseInstant(expires) ?? throwStartError('--expires must be an ISO 8601 date or time.');
}

function parseModels(models: string, { settings }: Foundation): readonly string[] {
  try {
    const names = models.split(',').map((model) => model.trim());
    return resolvePermittedModels(names, readCatalogue(settings.catalogueDir));
  } catch (error) {
    if (error instanceof InvalidRequestError) throw new StartError(`--${error.message}.`);
    throw error;
  }
}

function parseTags(tags: string): Readonly<Record<string, string>> {
  const entries = new Map(
    tags.split(',').map((tag) => {
      const [, name, value] = /^\s*([^=]+)=(.*)$/.exec(tag) ?? [];
      if (name === undefined || value === undefined)
        throw new StartError('--tags must be a list such as team=search,cost-centre=4711.');
      return [name.trim(), value.trim()];
    }),
  );
  if (entries.size < tags.split(',').length) throw new StartError('--tags must not have a name twice.');
  return Object.fromEntries(entries);
}

function throwStartError(message: string): never {
  throw new StartError(message);
}

/**
 * Lists the API keys that are not revoked, from the read models.
 * @param account only the keys of this account; undefined: those of all accounts with a name
 */
export async function printApiKeys(foundation: Foundation, account: string | undefined, print: Print): Promise<void> {
  const accountId = account === undefined ? undefined : (await findAccount(foundation, account)).id;
  await withPool(foundation.databaseUrl, async (pool) => {
    if (!(await waitForReadModels(foundation, pool))) print(READ_MODELS_LAG);
    const { heading, formatRow } = defineTable(
      ['account', 24],
      ['key', 25],
      ['id', 24],
      ['spent', -18],
      ['limit', -14],
      ['period', 9],
      ['in period', -18],
      ['state', 9],
      ['models and tags', 0],
    );
    print(heading);
    for await (const key of readAllKeys(pool, accountId, new Date().toISOString())) print(formatRow(...toCells(key)));
  });
}

function toCells(key: KeyView & { readonly accountName: string | null }): readonly string[] {
  const { accountName, accountId, name, keyId, usedInAll, limit, resetPeriod, usedInPeriod, models, metadata } = key;
  const tags = Object.entries(metadata).map(([tag, value]) => `${tag}=${value}`);
  return [
    accountName ?? accountId,
    name,
    keyId,
    formatUsd(usedInAll),
    limit === null ? 'none' : formatUsd(limit),
    resetPeriod ?? 'total',
    formatUsd(usedInPeriod),
    getState(key),
    [...(models ?? ['all models']), ...tags].join(' '),
  ];
}

function getState({ blocked, expireAt }: KeyView): string {
  if (blocked) return 'blocked';
  return expireAt !== null && expireAt <= new Date().toISOString() ? 'expired' : 'active';
}

/**
 * Blocks an API key, or lifts the block. The next request with it is rejected, on every gateway.
 * @param key the id of the key, or its name in an account with a name
 * @throws StartError if there is no such key
 */
export async function setKeyBlock(
  foundation: Foundation,
  { key, isBlocked, actor }: { readonly key: string; readonly isBlocked: boolean; readonly actor: string | undefined },
  print: Print,
): Promise<void> {
  await changeKey(foundation, { key, actor }, async (operator, { accountId, keyId, name }) => {
    const changes: Partial<KeyUpdated['data']> = { blocked: isBlocked };
    const command = { type: 'UpdateKey', data: { keyId, changes, at: new Date().toISOString() } } as const;
    await runAsOperator(operator.streams.accounts, accountId, command, { actor: operator.actor });
    print(`${name} is ${isBlocked ? 'blocked' : 'not blocked'}`);
  });
}

/**
 * Revokes an API key permanently.
 * @throws StartError like `setKeyBlock`
 */
export async function revokeApiKey(
  foundation: Foundation,
  params: { readonly key: string; readonly actor: string | undefined },
  print: Print,
): Promise<void> {
  await changeKey(foundation, params, async (operator, { accountId, keyId, name }) => {
    const command = { type: 'RevokeKey', data: { keyId, at: new Date().toISOString() } } as const;
    await runAsOperator(operator.streams.accounts, accountId, command, { actor: operator.actor });
    print(`${name} is revoked`);
  });
}

function changeKey(
  foundation: Foundation,
  { key, actor }: { readonly key: string; readonly actor: string | undefined },
  change: (operator: Operator, key: KeyView) => Promise<void>,
): Promise<void> {
  return withOperator(foundation, actor, async (operator) => {
    const isCurrent = await waitForReadModels(foundation, operator.pool);
    const existing = await findKey(operator.pool, key);
    if (existing) return change(operator, existing);
    if (!isCurrent) throw new StartError(READ_MODELS_LAG);
    throw new StartError(`There is no API key with the id or, in an account with a name, the name "${key}".`);
  });
}

/**
 * Returns the key with this id, else the key with this name in an account that the operator has named: anyone can open
 * an account with a key of any name.
 * @throws StartError if several such accounts have a key of this name
 */
async function findKey(pool: pg.Pool, idOrName: string): Promise<KeyView | undefined> {
  const { rows } = await pool.query<{ account_id: string; key_id: string; is_id: boolean }>(
    `select account_id, key_id, key_id = $1 as is_id from books.keys join books.balances using (account_id)
      where (key_id = $1 or keys.name = $1 and balances.name is not null) and deleted_at is null
      order by is_id desc limit 2`,
    [idOrName],
  );
  const [row] = rows;
  if (row?.is_id === false && rows.length > 1)
    throw new StartError(`Several accounts have a key named "${idOrName}": use the id of the key.`);
  return row && readKey(pool, row.account_id, row.key_id, new Date().toISOString());
}
