import { toMasterKeyId } from '#application';
import { type Foundation, findMasterKeys, listKnownMasterKeys, retireMasterKey, StartError } from '#foundation';
import { withPool } from './with-pool.ts';

type Print = (line: string) => void;

/**
 * Lists the fingerprints of all master keys of this installation, each with the number of its API keys that are not
 * revoked.
 */
export async function printMasterKeys({ databaseUrl }: Pick<Foundation, 'databaseUrl'>, print: Print): Promise<void> {
  await withPool(databaseUrl, async (pool) => {
    const { rows } = await pool.query<{ key: string; active: string }>(
      `select secret->>'key' as key, count(*) as active from books.keys where deleted_at is null group by 1`,
    );
    const active = new Map(rows.map((row) => [row.key, row.active]));
    for (const { id, since, isRetired } of await listKnownMasterKeys(pool)) {
      const state = isRetired ? 'retired' : 'in use';
      print(`${id}: ${state}, since ${since}, ${active.get(id) ?? 0} API keys that are not revoked`);
    }
  });
}

/** Retires a master key: processes then start without it, and all data that is sealed or hashed with it is lost. */
export async function retireKeyByFingerprint(
  { databaseUrl, settings }: Foundation,
  id: string,
  print: Print,
): Promise<void> {
  if ((await findMasterKeys(settings)).some((key) => toMasterKeyId(key) === id))
    throw new StartError(
      `${id} is in MASTER_KEY, or in master.key in DATA_DIR: remove it, and stop the processes that use it.`,
    );
  await withPool(databaseUrl, async (pool) => {
    if (!(await retireMasterKey(pool, id))) throw new StartError(`No master key ${id} is in use.`);
    print(`${id} is retired: data that is sealed or hashed with it is lost`);
  });
}
