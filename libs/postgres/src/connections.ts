/**
 * How this program connects to PostgreSQL, everywhere: nothing is waited for indefinitely. A host that is lost says no word, and
 * neither does a server that hangs or a cable that is cut; without the limits below both ends would keep a connection for
 * hours, and with it what it has locked.
 */
import pg from 'pg';

/** How long a connection may take to be made. */
const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 30_000;
/** An idle connection whose other end has been silent for so long is probed: each second, ten times. */
const KEEPALIVE_DELAY_MS = 5_000;
/**
 * What the server is told, in seconds unless it says otherwise: it probes a silent client as often, and drops one that does not
 * take what it is sent.
 */
const SERVER_KEEPALIVE_PARAMETERS = [
  ['tcp_keepalives_idle', '5'],
  ['tcp_keepalives_interval', '1'],
  ['tcp_keepalives_count', '10'],
  ['tcp_user_timeout', '15s'],
] as const;
/** The server gives up first: its word is that nothing happened, and the connection is good for the next query. */
const STATEMENT_TIMEOUT_SHARE = 0.9;
/** How long a transaction may be left open without a word, as by a client that was stopped in the middle. */
const IDLE_TRANSACTION_TIMEOUT_MS = 10_000;

export interface PgConnectionOptions {
  readonly connectionString: string;
  /** What it is for: `pg_stat_activity` has it behind `countinghouse-`. */
  readonly name: string;
  /** How long a query may take, 30 s unless said otherwise; `null`: as long as it takes, for what nobody waits for. */
  readonly queryTimeoutMs?: number | null;
  readonly connectTimeoutMs?: number;
  /** How long a transaction may be left open between two queries, 10 s unless said otherwise; `null`: any time. */
  readonly idleTransactionTimeoutMs?: number | null;
  /** Further run-time parameters: `-c name=value …`. */
  readonly options?: string;
}

export interface PgPoolOptions extends PgConnectionOptions {
  /** Connections at most; ten unless said otherwise. */
  readonly max?: number;
  /** Keeps connections open that nobody uses. */
  readonly allowsUnlimitedIdle?: boolean;
  /** An idle connection broke. The next query gets another one. */
  onIdleError?(error: Error): void;
}

/** A pool whose connections all keep to the limits. One that breaks fails the query in progress, and nothing else. */
export function openPool({
  max,
  allowsUnlimitedIdle = false,
  onIdleError = () => {},
  ...connectionOptions
}: PgPoolOptions): pg.Pool {
  const limits = { ...(max === undefined ? {} : { max }), ...(allowsUnlimitedIdle ? { idleTimeoutMillis: 0 } : {}) };
  const pool = new pg.Pool({ ...toClientConfig(connectionOptions), ...limits });
  pool.on('error', onIdleError);
  pool.on('connect', ignoreConnectionErrors);
  return pool;
}

/** A connection that keeps to the limits, and is not made yet. One that breaks fails the query in progress, and ends. */
export function createClient(connectionOptions: PgConnectionOptions): pg.Client {
  const client = new pg.Client(toClientConfig(connectionOptions));
  ignoreConnectionErrors(client);
  return client;
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

/** Without a listener it would end the process. */
function ignoreConnectionErrors(client: pg.ClientBase): void {
  client.on('error', () => {});
}
