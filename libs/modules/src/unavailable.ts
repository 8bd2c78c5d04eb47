import pg from 'pg';
import { StoreUnavailableError } from '#kernel';

/**
 * SQLSTATEs of an unavailable database: connection exception (08), rejected login such as one with an outdated password
 * (28), not accepting connections (55000), insufficient resources such as disk or connections (53), operator
 * intervention or timeout (57), system error (58), read-only (25006), missing right (42501). https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const UNAVAILABLE_SQLSTATE = /^(08|28|53|57|58|55000|25006|42501)/;

/**
 * Converts an error of a query to StoreUnavailableError, which gets status 503, if the database is unavailable. Returns
 * any other error unchanged. An error that is neither a DatabaseError nor a TypeError comes from pg itself: the
 * connection failed, or the query got no response in time.
 */
function toUnavailableError(error: unknown): unknown {
  const isUnavailable =
    error instanceof pg.DatabaseError ? UNAVAILABLE_SQLSTATE.test(error.code ?? '') : isConnectionError(error);
  return isUnavailable ? new StoreUnavailableError('the database is unavailable', { cause: error }) : error;
}

function isConnectionError(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError) && !(error instanceof StoreUnavailableError);
}

/** Makes `pool.query` fail with StoreUnavailableError while the database is unavailable. */
export function withUnavailableErrors(pool: pg.Pool): pg.Pool {
  const query = pool.query.bind(pool) as (...args: readonly unknown[]) => Promise<unknown>;
  const runQuery = (...args: readonly unknown[]) =>
    query(...args).catch((error: unknown) => {
      throw toUnavailableError(error);
    });
  return Object.assign(pool, { query: runQuery as typeof pool.query });
}
