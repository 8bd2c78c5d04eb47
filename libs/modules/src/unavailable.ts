import pg from 'pg';
import { StoreUnavailableError } from '#kernel';

/**
 * SQLSTATEs of a database that is away, full, read-only or being shut down: connection (08), not accepting connections (55000),
 * no room or no more connections (53), ended or given up by the server (57), its disk (58), read-only (25006).
 */
const UNAVAILABLE_SQLSTATE = /^(08|53|57|58|55000|25006)/;

/**
 * An error of a query that says that the database is away, as the failure that is answered with 503; any other as it is. What
 * pg throws without an answer of the server is its own: a connection that broke or was not had, a query that was not answered.
 */
export function toUnavailableError(error: unknown): unknown {
  const isUnavailable =
    error instanceof pg.DatabaseError ? UNAVAILABLE_SQLSTATE.test(error.code ?? '') : isConnectionError(error);
  return isUnavailable ? new StoreUnavailableError('the database did not answer', { cause: error }) : error;
}

function isConnectionError(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError) && !(error instanceof StoreUnavailableError);
}

/** A pool whose queries fail with StoreUnavailableError while the database is away. */
export function withUnavailableErrors(pool: pg.Pool): pg.Pool {
  const query = pool.query.bind(pool) as (...args: readonly unknown[]) => Promise<unknown>;
  const runQuery = (...args: readonly unknown[]) =>
    query(...args).catch((error: unknown) => {
      throw toUnavailableError(error);
    });
  return Object.assign(pool, { query: runQuery as typeof pool.query });
}
