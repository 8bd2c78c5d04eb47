import type pg from 'pg';
import { type Foundation, forgetKey, knownKeys, StartError } from '#infra';
import { openPool } from '#postgres';

type Print = (line: string) => void;

/** Lists the master keys that this installation has had, by their fingerprints, and what is under each. */
export async function keys({ databaseUrl }: Pick<Foundation, 'databaseUrl'>, print: Print): Promise<void> {
  await inDatabase(databaseUrl, async (pool) => {
    const { rows } = await pool.query<{ key: string; active: string }>(
      `select secret->>'key' as key, count(*) as active from books.keys where deleted_at is null group by 1`,
    );
    const active = new Map(rows.map((row) => [row.key, row.active]));
    for (const { id, since, forgotten } of await knownKeys(pool)) {
      const state = forgotten ? 'given up' : 'in use';
      print(`${id}: ${state}, since ${since}, ${active.get(id) ?? 0} API keys that are not revoked`);
    }
  });
}

/** Gives a master key up: processes start without it, and what is under it is lost. */
export async function forgetKeyOf({ databaseUrl }: Pick<Foundation, 'databaseUrl'>, id: string, print: Print) {
  await inDatabase(databaseUrl, async (pool) => {
    if (!(await forgetKey(pool, id))) throw new StartError(`No master key ${id} is in use here.`);
    print(`${id} is given up: what is sealed or hashed under it is lost`);
  });
}

async function inDatabase(connectionString: string, work: (pool: pg.Pool) => Promise<void>): Promise<void> {
  const pool = openPool({ connectionString, name: 'ledger', max: 1 });
  try {
    await work(pool);
  } finally {
    await pool.end();
  }
}
