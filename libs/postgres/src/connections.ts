/**
 * Creates connections to PostgreSQL, by default with limits that prevent an operation from waiting indefinitely. A lost
 * host, a server that hangs and a broken network link send no error. Without these limits both ends would retain a
 * connection for hours, and the server its locks.
 */
import type pg from 'pg';
import { CredentialClient, CredentialPool, countAlternatives, isCredentialRejected } from './addresses.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 30_000;
/** After this time without data, TCP keep-alive probes the other end. */
const KEEPALIVE_DELAY_MS = 5_000;
/**
 * Settings of the server for the connection. After 5 s without data the server probes the client every second. It ends
 * the connection after ten probes without a response, or if the client does not acknowledge data within 15 s.
 */
const SERVER_KEEPALIVE_PARAMETERS = [
  ['tcp_keepalives_idle', '5'],
  ['tcp_keepalives_interval', '1'],
  ['tcp_keepalives_count', '10'],
  ['tcp_user_timeout', '15s'],
] as const;
/**
 * The server's statement timeout as a share of the client's query timeout, so that the server's error comes first. It
 * means that the statement had no effect, and the connection remains usable.
 */
const STATEMENT_TIMEOUT_SHARE = 0.9;
/**
 * Maximum time between two queries of a transaction. The server ends the connection of a transaction that exceeds it,
 * for example after its client was suspended.
 */
const IDLE_TRANSACTION_TIMEOUT_MS = 10_000;

export interface PgConnectionOptions {
  /** Address of the database, or two with different credentials, separated by white space. */
  readonly connectionString: string;
  /** Purpose of the connection, shown in `pg_stat_activity` with the prefix `countinghouse-`. */
  readonly name: string;
  /** Maximum time of a query, 30 s by default; `null`: no limit, for queries that no caller waits for. */
  readonly queryTimeoutMs?: number | null;
  readonly connectTimeoutMs?: number;
  /** Maximum time between two queries of a transaction, 10 s by default; `null`: no limit. */
  readonly idleTransactionTimeoutMs?: number | null;
  /** Additional run-time parameters: `-c name=value …`. */
  readonly options?: string;
}

export interface PgPoolOptions extends PgConnectionOptions {
  /** Maximum number of connections; 10 by default. */
  readonly max?: number;
  /** Unused connections are not closed. */
  readonly allowsUnlimitedIdle?: boolean;
  /** Reports a lost idle connection. The next query gets another connection. */
  onIdleError?(error: Error): void;
}

/** Opens a pool whose connections have the limits above. If a connection breaks, only the query in progress fails. */
export function openPool({
  max,
  allowsUnlimitedIdle = false,
  onIdleError = () => {},
  ...connectionOptions
}: PgPoolOptions): pg.Pool {
  const pool = new CredentialPool({
    ...toClientConfig(connectionOptions),
    ...(max === undefined ? {} : { max }),
    ...(allowsUnlimitedIdle ? { idleTimeoutMillis: 0 } : {}),
  });
  pool.on('error', onIdleError);
  pool.on('connect', ignoreConnectionErrors);
  return pool;
}

/** Opens a connection with the limits above. If the connection breaks, the query in progress fails. */
export async function connectClient(connectionOptions: PgConnectionOptions): Promise<pg.Client> {
  for (let repetitions = countAlternatives(connectionOptions.connectionString); ; repetitions--) {
    const client = new CredentialClient(toClientConfig(connectionOptions));
    ignoreConnectionErrors(client);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => {}); // already closed; the error above matters
      if (repetitions <= 0 || !isCredentialRejected(error)) throw error;
    }
  }
}

/** Runs `work` with a connection of its own. Closing it releases its session locks, and ends an open transaction. */
export async function withClient<T>(
  connectionOptions: PgConnectionOptions,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await connectClient(connectionOptions);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function toClientConfig({ connectionString, name, queryTimeoutMs = QUERY_TIMEOUT_MS, ...rest }: PgConnectionOptions) {
  const {
    connectTimeoutMs = CONNECT_TIMEOUT_MS,
    idleTransactionTimeoutMs = IDLE_TRANSACTION_TIMEOUT_MS,
    options,
  } = rest;
  const parameters = [
    ...SERVER_KEEPALIVE_PARAMETERS,
    ['statement_timeout', `${Math.ceil((queryTimeoutMs ?? 0) * STATEMENT_TIMEOUT_SHARE)}ms`],
    ['idle_in_transaction_session_timeout', `${idleTransactionTimeoutMs ?? 0}ms`],
  ];
  const serverOptions = parameters.map(([parameter, value]) => `-c ${parameter}=${value}`);
  return {
    connectionString,
    application_name: `countinghouse-${name}`,
    connectionTimeoutMillis: connectTimeoutMs,
    ...(queryTimeoutMs === null ? {} : { query_timeout: queryTimeoutMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
    options: [...serverOptions, ...(options === undefined ? [] : [options])].join(' '),
  };
}

/** Without a listener an error would end the process. */
function ignoreConnectionErrors(client: pg.ClientBase): void {
  client.on('error', () => {});
}
