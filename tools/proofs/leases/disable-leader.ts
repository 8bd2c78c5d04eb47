/** The ways in which a leader is disabled. Other processes can work all the time. */
import pg from 'pg';
import { type StartedProcess, startProgram } from '../../processes.ts';
import { DatabaseLink } from '../database-link.ts';
import { waitUntil } from '../role-checks.ts';

/** The PostgreSQL role of the leader, which is disabled without an effect on other processes. */
const ROLE = 'leader';
const [PASSWORD, OTHER_PASSWORD] = ['before', 'after'];
/** Connections of leases have names with this prefix. They stay open in the ways that end those of the work. */
const LEASE_CONNECTION = 'countinghouse-lease-';
/** So short that no new connection completes a statement. */
const TERMINATION_INTERVAL_MS = 2;
/** Longer than the takeover may take. */
const BLOCKED_MS = 20_000;
const BLOCK_SIGNAL = 'SIGUSR2';
/** Lets the signal block the event loop of a process, so that it handles no timer and no data. */
const BLOCK_ON_SIGNAL = `data:text/javascript,${encodeURIComponent(
  `process.on('${BLOCK_SIGNAL}', () => { const end = Date.now() + ${BLOCKED_MS}; while (Date.now() < end); });`,
)}`;

/** A leader with a PostgreSQL role and a network link of its own. */
export interface Leader {
  readonly process: StartedProcess;
  readonly link: DatabaseLink;
  /** A connection of a superuser. */
  readonly admin: pg.Client;
}

/** Disables a leader. @returns a function that lets it work again */
type DisableLeader = (leader: Leader) => Promise<() => unknown>;

/** By description, which continues the sentence "a leader …". */
export const DISABLING_WAYS: Readonly<Record<string, DisableLeader>> = {
  'is suspended': async ({ process: { pid } }) => {
    process.kill(pid, 'SIGSTOP');
    return () => process.kill(pid, 'SIGCONT');
  },
  'is killed': async ({ process: started }) => {
    await started.kill();
    return () => {};
  },
  'has a blocked event loop': async ({ process: { pid } }) => {
    process.kill(pid, BLOCK_SIGNAL);
    return () => {};
  },
  'is rejected by the database': async ({ link }) => {
    link.reject();
    return () => link.reconnect();
  },
  'gets no response, except to its heartbeats': async ({ link }) => {
    link.disconnect();
    return () => link.reconnect();
  },
  'has an outdated password, and only the connections of its leases': async ({ admin }) => {
    await admin.query(`alter role ${ROLE} password '${OTHER_PASSWORD}'`);
    await terminateWork(admin);
    return () => admin.query(`alter role ${ROLE} password '${PASSWORD}'`);
  },
  'loses its connections again and again, except those of its leases': async ({ admin }) => {
    const stop = new AbortController();
    const terminating = (async () => {
      for (; !stop.signal.aborted; await new Promise((resolve) => setTimeout(resolve, TERMINATION_INTERVAL_MS)))
        await terminateWork(admin);
    })();
    return async () => {
      stop.abort();
      await terminating;
    };
  },
  'may only read, except with the connections of its leases': async ({ admin }) => {
    await admin.query(`alter role ${ROLE} set default_transaction_read_only = on`);
    await terminateWork(admin);
    return () => admin.query(`alter role ${ROLE} reset default_transaction_read_only`);
  },
};

/** Ends the connections of the leader, except those of its leases. */
async function terminateWork(admin: pg.Client): Promise<void> {
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 and not starts_with(application_name, $2)`,
    [ROLE, LEASE_CONNECTION],
  );
}

/** Creates the PostgreSQL role of leaders. It has the rights of the role in `databaseUrl`. */
export async function createLeaderRole(admin: pg.Client, databaseUrl: string): Promise<void> {
  const { username } = new URL(databaseUrl);
  await admin.query(`create role ${ROLE} login password '${PASSWORD}' in role ${username}`);
}

/** Starts a process that can be disabled, and waits until it is ready. */
export async function startLeader(
  role: string,
  env: Readonly<Record<string, string>>,
  { admin, databaseUrl }: { readonly admin: pg.Client; readonly databaseUrl: string },
): Promise<Leader> {
  const link = new DatabaseLink(LEASE_CONNECTION);
  const url = Object.assign(new URL(databaseUrl), { username: ROLE, password: PASSWORD });
  const settings = {
    LOG_LEVEL: 'info',
    ...env,
    HEALTH_PORT: '0',
    DATABASE_URL: await link.openProxy(url.href, '127.0.0.1'),
  };
  const command = [process.execPath, '--import', BLOCK_ON_SIGNAL, `dist/apps/${role}/src/main.js`];
  return { process: await startProgram(command, settings, /"msg":"ready"/), link, admin };
}

/** Kills a leader and waits until its connections have ended. */
export async function removeLeader({ process: started, link, admin }: Leader): Promise<void> {
  await started.kill();
  link.close();
  const open = 'select from pg_stat_activity where usename = $1';
  await waitUntil(async () => (await admin.query(open, [ROLE])).rowCount === 0);
}
