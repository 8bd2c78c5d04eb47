import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { Foundation } from '#foundation';
import { StoreUnavailableError } from '#kernel';
import { ProcessRole, withUnavailableErrors } from '#modules';
import { openPool } from '#postgres';
import { type HistoryFilter, type HistoryPage, QueryHistory } from '#projections';
import { OverloadedError } from '../edge/errors/errors.ts';

/** Maximum number of accounts whose history is read at the same time. */
const MAX_CONNECTIONS = 2;
/** Maximum time to wait for a connection, and maximum time of a query after that. */
const TIMEOUT_MS = 3_000;
/** Maximum number of unfinished reads of one account, which run one after the other. Further reads are rejected. */
const MAX_QUEUE_LENGTH = 50;

/**
 * Reads the query history through its own connection pool, one page at a time for each account. So reads of the history
 * take no connection from other reads, such as those of the balance, and one account occupies at most one connection.
 */
export class HistoryReadPool {
  private readonly reads = new Map<string, { last: Promise<unknown>; waiting: number }>();

  constructor(private readonly history: Pick<QueryHistory, 'read'>) {}

  /**
   * @throws OverloadedError if too many reads of the account are queued, no connection is free in time, or the query
   * times out; StoreUnavailableError if the database is unavailable; PageOutOfRangeError
   */
  async read(filter: HistoryFilter, page: number, pageSize: number): Promise<HistoryPage> {
    const { accountId } = filter;
    const accountReads = this.reads.get(accountId) ?? { last: Promise.resolve(), waiting: 0 };
    if (accountReads.waiting >= MAX_QUEUE_LENGTH) throw createOverloadedError();
    this.reads.set(accountId, accountReads);
    accountReads.waiting++;
    const read = accountReads.last.then(() => this.history.read(filter, page, pageSize));
    accountReads.last = read.catch(() => {}); // the caller of the read gets its error
    try {
      return await read;
    } catch (error) {
      throw isTimeout(error) ? createOverloadedError() : error;
    } finally {
      if (--accountReads.waiting === 0) this.reads.delete(accountId);
    }
  }
}

export const historyReadProviders: Provider = {
  provide: HistoryReadPool,
  inject: [ProcessRole, Foundation],
  useFactory: async (role: ProcessRole, { databaseUrl, log }: Foundation) => {
    const pool = openPool({
      connectionString: databaseUrl,
      name: `${role.name}-history`,
      max: MAX_CONNECTIONS,
      connectTimeoutMs: TIMEOUT_MS,
      queryTimeoutMs: TIMEOUT_MS,
      onIdleError: (err) => log.warn({ err }, 'an idle history connection failed'),
    });
    await role.closeOnExit({ close: () => pool.end() });
    return new HistoryReadPool(new QueryHistory(withUnavailableErrors(pool)));
  },
};

function createOverloadedError(): OverloadedError {
  return new OverloadedError('The query history is overloaded; retry later');
}

/**
 * Whether the server cancelled the query (57014), or pg timed out. pg has no class and no code for its own timeouts.
 */
function isTimeout(error: unknown): boolean {
  if (!(error instanceof StoreUnavailableError)) return false;
  const { cause } = error;
  if (cause instanceof pg.DatabaseError) return cause.code === '57014';
  return cause instanceof Error && /timeout exceeded when trying to connect|Query read timeout/.test(cause.message);
}
