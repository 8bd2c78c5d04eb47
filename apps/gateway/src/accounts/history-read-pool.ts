import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { Foundation } from '#foundation';
import { ProcessRole, toUnavailableError } from '#modules';
import { openPool } from '#postgres';
import { type HistoryFilter, type HistoryPage, QueryHistory } from '#projections';
import { OverloadedError } from '../edge/errors/errors.ts';

/** Accounts whose history is read at a time. */
const MAX_CONNECTIONS = 2;
/** How long a read may run, and how long it may wait for a connection before. */
const TIMEOUT_MS = 3_000;
/** Reads of one account that wait for each other. */
const MAX_QUEUE_LENGTH = 50;

/**
 * Reads the history through connections of its own, of each account one page at a time: whoever has millions of records, and
 * however often he asks, takes no connection from those who want their balance, and not both from others' histories.
 */
export class HistoryReadPool {
  private readonly reads = new Map<string, { last: Promise<unknown>; waiting: number }>();

  constructor(private readonly history: QueryHistory) {}

  /** @throws OverloadedError where too many wait, or it takes too long; PageOutOfRangeError */
  async read(filter: HistoryFilter, page: number, pageSize: number): Promise<HistoryPage> {
    const { accountId } = filter;
    const accountReads = this.reads.get(accountId) ?? { last: Promise.resolve(), waiting: 0 };
    if (accountReads.waiting >= MAX_QUEUE_LENGTH) throw createOverloadedError();
    this.reads.set(accountId, accountReads);
    accountReads.waiting++;
    const read = accountReads.last.then(() => this.history.read(filter, page, pageSize));
    accountReads.last = read.catch(() => {});
    try {
      return await read;
    } catch (error) {
      throw isTimeout(error) ? createOverloadedError() : toUnavailableError(error);
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
      onIdleError: (err) => log.warn({ err }, 'an idle connection for the history broke'),
    });
    await role.closeOnExit({ close: () => pool.end() });
    return new HistoryReadPool(new QueryHistory(pool));
  },
};

function createOverloadedError(): OverloadedError {
  return new OverloadedError('The history is read too often at the moment; try again soon');
}

/** Cancelled by the server, or not answered in time. (pg has no class or code for its own timeouts.) */
function isTimeout(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code === '57014';
  return error instanceof Error && /timeout exceeded when trying to connect|Query read timeout/.test(error.message);
}
