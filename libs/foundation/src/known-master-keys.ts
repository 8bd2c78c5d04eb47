/**
 * The fingerprints of the master keys of an installation, stored with the data that the keys protect. A process that
 * lacks a key in use could not open or find the secrets under this key. So the process does not start.
 */
import type pg from 'pg';
import { StartError } from './start-error.ts';

export const masterKeyMigrations = [
  {
    id: 'master-keys-1',
    sql: `create table es.master_keys (
            id           text primary key, -- a fingerprint
            since        timestamptz not null default clock_timestamp(),
            forgotten_at timestamptz       -- what it sealed is given up
          )`,
  },
] as const;

export interface KnownMasterKey {
  readonly id: string;
  /** ISO 8601. */
  readonly since: string;
  readonly isRetired: boolean;
}

/** Returns all known keys, the oldest first. */
export async function listKnownMasterKeys(database: Pick<pg.Pool, 'query'>): Promise<readonly KnownMasterKey[]> {
  const { rows } = await database.query<{ id: string; since: Date; forgotten_at: Date | null }>(
    'select id, since, forgotten_at from es.master_keys order by since, id',
  );
  return rows.map(({ id, since, forgotten_at: forgottenAt }) => {
    return { id, since: since.toISOString(), isRetired: forgottenAt !== null };
  });
}

/**
 * Checks that a process has every key that is in use, and records its key for new secrets. If processes start for the
 * first time with different keys, only the first of them succeeds.
 * @param keyRing fingerprints; the first is that of the key for new secrets
 * @param findFirstUsedKeyId returns the fingerprint of the key of the oldest secret, for an installation whose keys
 *   were not recorded yet
 * @returns the fingerprint of the oldest key that is in use
 * @throws StartError if the key ring lacks a key that is in use
 */
export async function registerMasterKeys(
  pool: pg.Pool,
  keyRing: readonly string[],
  findFirstUsedKeyId: () => Promise<string | undefined>,
): Promise<string> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('lock table es.master_keys in exclusive mode');
    if ((await listKnownMasterKeys(client)).length === 0) await recordKey(client, await findFirstUsedKeyId());
    const used = await assertKeyRingComplete(client, keyRing);
    await recordKey(client, keyRing[0]);
    await client.query('commit');
    return used[0]?.id ?? (keyRing[0] as string);
  } catch (error) {
    await client.query('rollback').catch(() => {}); // a lost connection ends the transaction as well
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Checks that a key ring has every key that is in use.
 * @returns the keys in use, the oldest first
 * @throws StartError if the key ring lacks one of them
 */
export async function assertKeyRingComplete(
  database: Pick<pg.Pool, 'query'>,
  keyRing: readonly string[],
): Promise<readonly KnownMasterKey[]> {
  const used = (await listKnownMasterKeys(database)).filter(({ isRetired }) => !isRetired);
  const missing = used.find(({ id }) => !keyRing.includes(id));
  if (missing) throw createMissingKeyError(missing, keyRing);
  return used;
}

/** @throws StartError if a key is in use: the secrets under that key could not be opened with a new one */
export async function assertNoSecretsYet(
  pool: pg.Pool,
  findFirstUsedKeyId: () => Promise<string | undefined>,
): Promise<void> {
  const existingKeys = await listKnownMasterKeys(pool);
  const used =
    existingKeys.length === 0 ? await findFirstUsedKeyId() : existingKeys.find(({ isRetired }) => !isRetired)?.id;
  if (used !== undefined)
    throw new StartError(
      `MASTER_KEY is not set and DATA_DIR has no master.key, but the installation uses the key with the fingerprint ${used}: restore it.`,
    );
}

/** Records a key as in use, also one that was retired before. */
async function recordKey(client: pg.PoolClient, id: string | undefined): Promise<void> {
  if (id === undefined) return;
  await client.query('insert into es.master_keys (id) values ($1) on conflict (id) do update set forgotten_at = null', [
    id,
  ]);
}

function createMissingKeyError({ id, since }: KnownMasterKey, keyRing: readonly string[]): StartError {
  return new StartError(
    `MASTER_KEY, or master.key in DATA_DIR, lacks the key with the fingerprint ${id}, in use since ${since}; it has only ${keyRing.join(', ')}: restore the missing key, alone or after a new one as "new,old".`,
  );
}

/**
 * Retires a key: secrets that are sealed or hashed under it are lost, and processes start without it.
 * @returns false if the key is unknown or was already retired
 */
export async function retireMasterKey(database: Pick<pg.Pool, 'query'>, id: string): Promise<boolean> {
  const { rowCount } = await database.query(
    'update es.master_keys set forgotten_at = clock_timestamp() where id = $1 and forgotten_at is null',
    [id],
  );
  return rowCount === 1;
}
