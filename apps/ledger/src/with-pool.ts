import type pg from 'pg';
import { openPool } from '#postgres';

/** Runs `work` with a connection pool, which is closed afterwards. */
export async function withPool<T>(connectionString: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = openPool({ connectionString, name: 'ledger', max: 1 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
