/**
 * The master keys that an installation has: their fingerprints, kept beside what they seal. What is sealed or hashed under a key
 * that a process lacks cannot be opened or found by it, and what it makes meanwhile is under another one: so it does not start.
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

/** From the oldest on. */
export async function listKnownMasterKeys(database: Pick<pg.Pool, 'query'>): Promise<readonly KnownMasterKey[]> {
  const { rows } = await database.query<{ id: string; since: Date; forgotten_at: Date | null }>(
    'select id, since, forgotten_at from es.master_keys order by since, id',
  );
  return rows.map(({ id, since, forgotten_at: forgottenAt }) => {
    return { id, since: since.toISOString(), isRetired: forgottenAt !== null };
  });
}

/**
 * Checks that a process has every key that was ever used here, and notes the one that it uses for what is new. Of processes
 * that start for the first time with different keys one is admitted.
 * @param keyRing fingerprints; the first is of the key for what is new
 * @param findFirstUsedKeyId the key of the oldest secret, for an installation from before keys were noted
 * @returns the oldest that is in use
 * @throws StartError
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
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Checks that a ring has every key that is in use.
 * @returns them, from the oldest on
 * @throws StartError
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

/** @throws StartError where secrets are under a key already, so that a new one would not open them */
export async function assertNoSecretsYet(
  pool: pg.Pool,
  findFirstUsedKeyId: () => Promise<string | undefined>,
): Promise<void> {
  const existingKeys = await listKnownMasterKeys(pool);
  const used =
    existingKeys.length === 0 ? await findFirstUsedKeyId() : existingKeys.find(({ isRetired }) => !isRetired)?.id;
  if (used !== undefined)
    throw new StartError(
      `MASTER_KEY is not set and DATA_DIR has no master.key, while secrets are under the key with the fingerprint ${used}: put it back.`,
    );
}

/** A key that was given up and is used again is one that is in use. */
async function recordKey(client: pg.PoolClient, id: string | undefined): Promise<void> {
  if (id === undefined) return;
  await client.query('insert into es.master_keys (id) values ($1) on conflict (id) do update set forgotten_at = null', [
    id,
  ]);
}

function createMissingKeyError({ id, since }: KnownMasterKey, keyRing: readonly string[]): StartError {
  return new StartError(
    `MASTER_KEY, or master.key in DATA_DIR, lacks the key with the fingerprint ${id}, which secrets have been under since ${since}; it has ${keyRing.join(', ')}: put it back, or behind another as "new,old".`,
  );
}

/**
 * Gives a key up: what is sealed or hashed under it is lost, and processes start without it.
 * @returns false when no such key was noted, or it was given up before
 */
export async function retireMasterKey(database: Pick<pg.Pool, 'query'>, id: string): Promise<boolean> {
  const { rowCount } = await database.query(
    'update es.master_keys set forgotten_at = clock_timestamp() where id = $1 and forgotten_at is null',
    [id],
  );
  return rowCount === 1;
}
