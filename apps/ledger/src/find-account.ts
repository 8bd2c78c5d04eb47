/** How commands find the account that a person names. */

import type pg from 'pg';
import { createStreams, Secrets, toAccountIds, toMasterKeyId } from '#application';
import { ACCOUNT, isAccountName, toAccountNameStreamId } from '#domain';
import { assertKeyRingComplete, type Foundation, findMasterKeys, StartError } from '#foundation';
import { NO_SNAPSHOTS, toStreamName } from '#kernel';
import { ProjectionProgress } from '#projections';
import { nodeRandomness } from '#runtime';
import { withPool } from './with-pool.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** A running projector needs far less. */
const READ_MODEL_WAIT_MS = 2_000;

/** For lists that are printed although the read models lack events. */
export const READ_MODELS_LAG = 'the lists lack the latest events: is a projector running?';

export interface NamedAccount {
  readonly id: string;
  /** Its name, or its id if it has none. */
  readonly name: string;
}

/**
 * Returns an account by its name, its id, its `credit_id`, or the name of one of its API keys. Names of keys count only
 * in accounts that the operator has named: anyone can open an account with a key of any name.
 * @throws StartError if there is no such account, or several have a key of this name
 */
export async function findAccount(foundation: Foundation, text: string): Promise<NamedAccount> {
  const id = await resolveAccountId(foundation, text);
  if (id !== undefined) return { id, name: (await readName(foundation, id)) ?? id };
  const byName = await findByName(foundation, text);
  if (byName) return byName;
  const owners = await findByKeyName(foundation, text);
  if (owners.length > 1) throw new StartError(`Several accounts have a key named "${text}": name the account.`);
  const [owner] = owners;
  if (owner) return owner;
  throw new StartError(`There is no account "${text}", and no account with a name that has a key "${text}".`);
}

async function findByName({ store, runtime }: Foundation, name: string): Promise<NamedAccount | undefined> {
  if (!isAccountName(name)) return undefined;
  const { accountNames } = createStreams(store, NO_SNAPSHOTS, runtime);
  const event = await accountNames.read(toAccountNameStreamId(name));
  return event ? { id: event.accountId, name: event.name } : undefined;
}

async function findByKeyName(foundation: Foundation, keyName: string): Promise<readonly NamedAccount[]> {
  return withPool(foundation.databaseUrl, async (pool) => {
    await waitForReadModels(foundation, pool);
    const { rows } = await pool.query<NamedAccount>(
      `select distinct account_id as id, balances.name
         from books.keys join books.balances using (account_id)
        where keys.name = $1 and balances.name is not null and deleted_at is null limit 2`,
      [keyName],
    );
    return rows;
  });
}

async function readName({ databaseUrl }: Foundation, accountId: string): Promise<string | undefined> {
  return withPool(databaseUrl, async (pool) => {
    const { rows } = await pool.query<{ name: string | null }>(
      'select name from books.balances where account_id = $1',
      [accountId],
    );
    return rows[0]?.name ?? undefined;
  });
}

/**
 * Waits until the read models of accounts and keys have all events so far, so that a command sees what earlier commands
 * did.
 * @returns false if they lag, for example because no projector runs
 */
export async function waitForReadModels({ store }: Pick<Foundation, 'store'>, pool: pg.Pool): Promise<boolean> {
  const position = await store.readLastPosition();
  return new ProjectionProgress(pool).waitUntilApplied(['balances', 'keys'], position, READ_MODEL_WAIT_MS);
}

/**
 * Returns the internal id of an account, as used in events and tables. A `credit_id` is not stored, so finding its
 * account requires the master keys.
 * @param idOrCreditId the `credit_id` or the internal id
 * @returns undefined if there is no such account
 * @throws StartError if no account is found, but a master key is missing under which the account may exist
 */
async function resolveAccountId(foundation: Foundation, idOrCreditId: string): Promise<string | undefined> {
  if (!UUID.test(idOrCreditId)) return undefined;
  const { settings, store, databaseUrl } = foundation;
  const name = idOrCreditId.toLowerCase();
  const [masterKey, ...otherKeys] = await findMasterKeys(settings);
  const ids = masterKey ? toAccountIds(name, new Secrets(nodeRandomness, masterKey, otherKeys)) : [];
  for (const id of [name, ...ids]) if (await store.readHead(toStreamName(ACCOUNT, id))) return id;
  const keyIds = masterKey ? [masterKey, ...otherKeys].map(toMasterKeyId) : [];
  await withPool(databaseUrl, (pool) => assertKeyRingComplete(pool, keyIds));
  return undefined;
}
