import type pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import { retry } from '#kernel';
import { withClient } from '#postgres';
import { nodeRandomness, nodeTimers } from '#runtime';
import { assertContractAccepted, loadAcceptedContracts } from './accepted-contracts.ts';
import { findMissingRight } from './missing-right.ts';
import type { StartProgress } from './progress.ts';
import { countConnectionsByContract } from './running-contracts.ts';
import { NotReadyError, type StartStep } from './start-deadline.ts';
import { StartError } from './start-error.ts';

export interface Migration {
  readonly id: string;
  readonly sql: string;
  /**
   * The least contract of programs that work after this migration. Programs of the release before must do so. Unset in
   * migrations from before version 1.0.0, after which no older program works.
   */
  readonly minContract?: number;
  /** What it changes, as `npm run migrate -- --plan` prints it. */
  readonly changes?: string;
  /** Tables that are locked while the migration runs. */
  readonly locks?: readonly TableLock[];
}

export interface TableLock {
  readonly table: string;
  readonly blocks: 'writes' | 'reads and writes';
  /** Measured time for 1,000,000 rows; 0 if the time does not depend on their number. */
  readonly millisecondsPerMillionRows: number;
}

export interface MigrationOptions extends StartStep {
  /** Shows the progress of the migrations; by default nothing shows it. */
  readonly startProgress?: StartProgress | undefined;
}

/** The contract of version 1.0.0. */
const FIRST_CONTRACT = 1;

/** Arbitrary number, but the same for all processes that migrate the same database. */
const MIGRATION_LOCK = 7_301_964;
/**
 * A migration that waits for the lock of a table blocks all later queries of that table, even reads. So it waits only
 * briefly, and retries after a delay.
 */
const LOCK_TIMEOUT_MS = 200;
const BACKOFF = { minMs: 400, maxMs: 400 };
const TIMEOUT_MS = 120_000;
const DEFAULT_OPTIONS: MigrationOptions = { remainingMs: TIMEOUT_MS, explain: () => {} };
const CONNECTION_NAME = 'migrate';
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * What migrations create belongs to the owner of earlier ones, or of the database, if the user is a member of that role.
 * Otherwise another login of the same role could not change it.
 */
const BECOME_OWNER_SQL = `
  select set_config('role', pg_get_userbyid(owner), false)
    from (select coalesce((select relowner from pg_class where oid = to_regclass('public.migrations')), datdba) as owner
            from pg_database where datname = current_database()) as existing
   where pg_has_role(owner, 'member')`;

/** Whether processes apply migrations when they start, or leave that to `npm run migrate`. */
export type MigrationMode = 'start' | 'command';

/**
 * Applies the pending migrations, each in its own transaction. Several processes may do this at once, while others
 * serve requests. A migration waits at most `LOCK_TIMEOUT_MS` for a lock and then retries, because its waiting delays
 * other queries.
 * @throws StartError if the database accepts only other releases than this one, if processes are running that do not
 *   work after a migration, if the user may not apply one, or if another transaction locks a table, or another migration
 *   runs, until the timeout; any other error of the database
 */
export async function migrate(
  connectionString: string,
  migrations: readonly Migration[],
  options: Partial<MigrationOptions> = {},
): Promise<void> {
  await applyMissing(connectionString, migrations, { ...DEFAULT_OPTIONS, ...options }, assertContractAccepted);
}

/**
 * Applies the first of all migrations, as `migrate` does. The database may accept only older releases until the others
 * are applied too.
 */
export async function migratePartly(connectionString: string, migrations: readonly Migration[]): Promise<void> {
  await applyMissing(connectionString, migrations, DEFAULT_OPTIONS, assertNotNewer);
}

async function applyMissing(
  connectionString: string,
  migrations: readonly Migration[],
  options: MigrationOptions,
  assertUsable: (client: pg.Client) => Promise<void>,
): Promise<ReadonlySet<string>> {
  const { applied, pending: missing } = await findPendingMigrations(connectionString, migrations, assertUsable);
  if (missing.length === 0) return applied;
  await withClient({ connectionString, name: CONNECTION_NAME, queryTimeoutMs: null }, async (client) => {
    await applyPending(client, migrations, options).catch((error) => {
      const reason = findMissingRight(error);
      if (reason === undefined) throw error;
      throw new StartError(
        `The database lacks the migrations ${formatIds(missing)}, and its user may not apply them (${reason}): run "npm run migrate" with DATABASE_URL for a login of the owner of the tables.`,
      );
    });
    await assertUsable(client);
  });
  return new Set([...applied, ...missing.map(({ id }) => id)]);
}

/** @throws StartError if the database accepts only newer releases than this one */
async function assertNotNewer(client: pg.Client): Promise<void> {
  const accepted = await loadAcceptedContracts(client);
  if (accepted && WRITE_CONTRACT < accepted.oldest) await assertContractAccepted(client);
}

async function applyPending(
  client: pg.Client,
  migrations: readonly Migration[],
  { remainingMs, explain, startProgress }: MigrationOptions,
): Promise<void> {
  const lockWait = { deadline: performance.now() + remainingMs, explain };
  await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await retryWhileLocked(lockWait, () => client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]));
  await client.query(BECOME_OWNER_SQL);
  await client.query(
    'create table if not exists public.migrations (id text primary key, applied_at timestamptz not null default now())',
  );
  const { pending } = await listMigrations(client, migrations);
  await assertProcessesSupport(client, pending);
  const progress = startProgress?.({ name: 'migrate', total: pending.length, unit: 'migrations' });
  try {
    for (const [i, migration] of pending.entries()) {
      await retryWhileLocked(lockWait, () => apply(client, migration));
      progress?.update(i + 1);
    }
  } finally {
    progress?.finish();
  }
}

/**
 * Applies the pending migrations when a process starts, or only checks that there are none, as `mode` specifies.
 * @returns the ids of all migrations that the database has, also of other tables
 * @throws NotReadyError if migrations are pending that only the command may apply; otherwise as `migrate` does
 */
export async function prepareDatabase(
  connectionString: string,
  migrations: readonly Migration[],
  mode: MigrationMode,
  wait: StartStep = DEFAULT_OPTIONS,
): Promise<ReadonlySet<string>> {
  if (mode === 'start') return applyMissing(connectionString, migrations, wait, assertContractAccepted);
  const { applied, pending } = await findPendingMigrations(connectionString, migrations, assertContractAccepted);
  if (pending.length === 0) return applied;
  throw new NotReadyError(`it lacks the migrations ${formatIds(pending)}: run "npm run migrate", or set MIGRATE=start`);
}

/** The migrations of a database. */
interface MigrationState {
  /** The ids of all that were applied. */
  readonly applied: ReadonlySet<string>;
  /** Those in question that were not. */
  readonly pending: readonly Migration[];
}

/**
 * Finds the pending migrations. If there are none, asserts that this release may use the database. Unlike migrations,
 * these questions have the usual time limit of a query.
 */
async function findPendingMigrations(
  connectionString: string,
  migrations: readonly Migration[],
  assertUsable: (client: pg.Client) => Promise<void>,
): Promise<MigrationState> {
  return withClient({ connectionString, name: CONNECTION_NAME }, async (client) => {
    const state = await listMigrations(client, migrations);
    if (state.pending.length === 0) await assertUsable(client);
    return state;
  });
}

/** A migration that is pending, and what hinders it. */
export interface PlannedMigration extends Migration {
  /** Estimated number of rows of each locked table. */
  readonly lockedRows: readonly number[];
}

export interface MigrationPlan {
  readonly pending: readonly PlannedMigration[];
  /** The least contract of processes that work after all these migrations. */
  readonly minContract: number;
  /** Number of connections by the contract of their process, of all processes that are running. */
  readonly connectionsByContract: ReadonlyMap<number, number>;
}

/** Returns what `migrate` would do. Changes nothing. */
export async function planMigrations(
  connectionString: string,
  migrations: readonly Migration[],
): Promise<MigrationPlan> {
  return withClient({ connectionString, name: CONNECTION_NAME }, async (client) => {
    const { pending } = await listMigrations(client, migrations);
    const planned: PlannedMigration[] = [];
    for (const migration of pending) {
      const lockedRows: number[] = [];
      for (const { table } of migration.locks ?? []) lockedRows.push(await estimateRows(client, table));
      planned.push({ ...migration, lockedRows });
    }
    const connectionsByContract = await countConnectionsByContract(client);
    return { pending: planned, minContract: getMinContract(pending), connectionsByContract };
  });
}

function formatIds(migrations: readonly Migration[]): string {
  return migrations.map(({ id }) => id).join(', ');
}

async function estimateRows(client: pg.Client, table: string): Promise<number> {
  const { rows } = await client.query<{ rows: number }>(
    'select greatest(reltuples, 0)::float8 as rows from pg_class where oid = to_regclass($1)',
    [table],
  );
  return rows[0]?.rows ?? 0;
}

function getMinContract(migrations: readonly Migration[]): number {
  return Math.max(0, ...migrations.map(({ minContract = FIRST_CONTRACT }) => minContract));
}

/** @throws StartError if processes are running that do not work after these migrations */
async function assertProcessesSupport(client: pg.Client, pending: readonly Migration[]): Promise<void> {
  const minContract = getMinContract(pending);
  const oldest = Math.min(...(await countConnectionsByContract(client)).keys());
  if (oldest >= minContract) return;
  const breaking = pending.filter((migration) => getMinContract([migration]) > oldest);
  throw new StartError(
    `Processes of an older version are running that do not work after the migrations ${formatIds(breaking)}: stop them first, or upgrade by the releases in between ("npm run migrate -- --plan" says more).`,
  );
}

async function listMigrations(client: pg.Client, migrations: readonly Migration[]): Promise<MigrationState> {
  const tableCheck = await client.query(`select to_regclass('public.migrations') is not null as known`);
  if (!tableCheck.rows[0].known) return { applied: new Set(), pending: migrations };
  const { rows } = await client.query<{ id: string }>('select id from public.migrations');
  const applied = new Set(rows.map(({ id }) => id));
  return { applied, pending: migrations.filter(({ id }) => !applied.has(id)) };
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  try {
    await client.query('begin');
    await client.query(migration.sql);
    await client.query('insert into public.migrations (id) values ($1)', [migration.id]);
    await assertProcessesSupport(client, [migration]); // a process may have appeared while this waited for a lock
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {}); // a lost connection ends the transaction as well
    throw error;
  }
}

async function retryWhileLocked(
  { deadline, explain }: { readonly deadline: number; explain(reason: string): void },
  work: () => Promise<unknown>,
): Promise<void> {
  await retry(work, {
    ...BACKOFF,
    chance: nodeRandomness.chance,
    sleep: nodeTimers.sleep,
    shouldRetry: (error) => {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) return false;
      if (performance.now() > deadline)
        throw new StartError(
          'The database cannot be migrated while a transaction locks a table to be changed, or another migration is running: end it, and start again.',
        );
      explain('another process migrates it, or a transaction locks a table that a migration changes');
      return true;
    },
  });
}
