/**
 * How this program connects to PostgreSQL, everywhere: nothing is waited for indefinitely. A host that is lost says no word, and
 * neither does a server that hangs or a cable that is cut; without the limits below both ends would keep a connection for
 * hours, and with it what it has locked.
 */
import pg from 'pg';

/** How long a connection may take to be made. */
const CONNECT_WITHIN_MS = 10_000;
const QUERY_WITHIN_MS = 30_000;
/** An idle connection whose other end has been silent for so long is probed: each second, ten times. */
const PROBE_AFTER_MS = 5_000;
/**
 * What the server is told, in seconds unless it says otherwise: it probes a silent client as often, and drops one that does not
 * take what it is sent.
 */
const SERVER_SIDE = [
  ['tcp_keepalives_idle', '5'],
  ['tcp_keepalives_interval', '1'],
  ['tcp_keepalives_count', '10'],
  ['tcp_user_timeout', '15s'],
] as const;
/** The server gives up first: its word is that nothing happened, and the connection is good for the next query. */
const OF_THE_SERVER = 0.9;
/** How long a transaction may be left open without a word, as by a client that was stopped in the middle. */
const OPEN_TRANSACTION_WITHIN_MS = 10_000;

export interface PgConnectionOptions {
  readonly connectionString: string;
  /** What it is for: `pg_stat_activity` has it behind `countinghouse-`. */
  readonly name: string;
  /** How long a query may take, 30 s unless said otherwise; `null`: as long as it takes, for what nobody waits for. */
  readonly queryWithinMs?: number | null;
  readonly connectWithinMs?: number;
  /** How long a transaction may be left open between two queries, 10 s unless said otherwise; `null`: any time. */
  readonly openTransactionWithinMs?: number | null;
  /** Further run-time parameters: `-c name=value …`. */
  readonly options?: string;
}

export interface PgPoolOptions extends PgConnectionOptions {
  /** Connections at most; ten unless said otherwise. */
  readonly max?: number;
  /** Keeps connections open that nobody uses. */
  readonly keepIdle?: boolean;
  /** An idle connection broke. The next query gets another one. */
  onBroken?(error: Error): void;
}

/** A pool whose connections all keep to the limits. One that breaks fails the query in progress, and nothing else. */
export function openPool({ max, keepIdle = false, onBroken = () => {}, ...connecting }: PgPoolOptions): pg.Pool {
  const limits = { ...(max === undefined ? {} : { max }), ...(keepIdle ? { idleTimeoutMillis: 0 } : {}) };
  const pool = new pg.Pool({ ...configOf(connecting), ...limits });
  pool.on('error', onBroken);
  pool.on('connect', failsTheQuery);
  return pool;
}

/** A connection that keeps to the limits, and is not made yet. One that breaks fails the query in progress, and ends. */
export function newClient(connecting: PgConnectionOptions): pg.Client {
  const client = new pg.Client(configOf(connecting));
  failsTheQuery(client);
  return client;
}

function configOf({ connectionString, name, queryWithinMs = QUERY_WITHIN_MS, ...more }: PgConnectionOptions) {
  const { connectWithinMs = CONNECT_WITHIN_MS, openTransactionWithinMs = OPEN_TRANSACTION_WITHIN_MS, options } = more;
  const parameters = [
    ...SERVER_SIDE,
    ['statement_timeout', `${Math.ceil((queryWithinMs ?? 0) * OF_THE_SERVER)}ms`],
    ['idle_in_transaction_session_timeout', `${openTransactionWithinMs ?? 0}ms`],
  ];
  const told = parameters.map(([parameter, value]) => `-c ${parameter}=${value}`);
  return {
    connectionString,
    application_name: `countinghouse-${name}`,
    connectionTimeoutMillis: connectWithinMs,
    ...(queryWithinMs === null ? {} : { query_timeout: queryWithinMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: PROBE_AFTER_MS,
    options: [...told, ...(options === undefined ? [] : [options])].join(' '),
  };
}

/** Without a listener it would end the process. */
function failsTheQuery(client: pg.ClientBase): void {
  client.on('error', () => {});
}
