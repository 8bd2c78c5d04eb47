import { Module } from '@nestjs/common';
import pg from 'pg';
import { Clock, OperatorProblems } from '#application';
import { createStoreTimeQuery, StoreClock } from '#connectors';
import {
  Foundation,
  isContractAccepted,
  loadAcceptedContracts,
  openFoundation,
  RELEASE,
  SettingError,
  type Settings,
} from '#foundation';
import {
  areOfSameDatabase,
  ConnectionProbe,
  openPool as connect,
  listAddresses,
  replaceDatabaseAddress,
} from '#postgres';
import { countIncompleteStreams, listBlockedProjections, ProjectorLag } from '#projections';
import { Readiness } from './readiness.ts';
import { ProcessRole } from './role.ts';
import { withUnavailableErrors } from './unavailable.ts';

/** The stores that all roles use, one of each per process: the database and the event store. */
@Module({
  providers: [
    { provide: StoreClock, inject: [ProcessRole, Foundation, pg.Pool], useFactory: openClock },
    { provide: Clock, useExisting: StoreClock },
    ProjectorLag,
    {
      provide: OperatorProblems,
      inject: [ProcessRole, Foundation, StoreClock],
      useFactory: (role: ProcessRole, { runtime }: Foundation, clock: StoreClock) =>
        new OperatorProblems({ reportError: runtime.reportError, now: () => clock.nowMs() }, (setting) =>
          role.getVariable(setting),
        ),
    },
    {
      provide: Readiness,
      inject: [Foundation, pg.Pool, StoreClock, OperatorProblems],
      useFactory: createReadiness,
    },
    {
      provide: Foundation,
      inject: [ProcessRole],
      useFactory: openStores,
    },
    {
      provide: pg.Pool,
      inject: [ProcessRole, Foundation],
      useFactory: (role: ProcessRole, { databaseUrl }: Foundation) => openPool(role, databaseUrl),
    },
  ],
  exports: [Clock, ProjectorLag, Readiness, OperatorProblems, Foundation, pg.Pool],
})
export class StoresModule {}

async function openStores(role: ProcessRole): Promise<Foundation> {
  const foundation = await role.closeOnExit(await openFoundation(role.settings, role.log));
  const replace = ({ databaseUrl, eventStoreUrl }: Settings) => {
    replaceCredentials('DATABASE_URL', foundation.databaseUrl, databaseUrl);
    if (eventStoreUrl !== undefined) foundation.store.replaceCredentials?.(eventStoreUrl);
  };
  role.onSecretChange(replace);
  replace(role.settings); // they may have changed during the start
  return foundation;
}

/** From now on, opens connections to the database `original` with the credentials of CONTENT_DATABASE_URL. */
export function followContentCredentials(role: ProcessRole, original: string): void {
  const replace = ({ contentDatabaseUrl }: Settings) =>
    replaceCredentials('CONTENT_DATABASE_URL', original, contentDatabaseUrl);
  role.onSecretChange(replace);
  replace(role.settings); // they may have changed during the start
}

/**
 * From now on, opens connections to a database with the credentials of a changed setting.
 * @throws SettingError if it is another database: the process has checked only the one with which it started
 */
function replaceCredentials(variable: string, original: string, changed: string | undefined): void {
  if (changed === undefined) return;
  if (!areOfSameDatabase([...listAddresses(original), ...listAddresses(changed)]))
    throw new SettingError(`${variable} is another database; only its credentials may change while a process runs.`);
  replaceDatabaseAddress(original, changed);
}

/** No stream has this name; the check only needs a response of the store. */
const MISSING_STREAM = 'account-ready';

function createReadiness(
  { store, databaseUrl }: Foundation,
  pool: pg.Pool,
  clock: StoreClock,
  problems: OperatorProblems,
): Readiness {
  const readiness = new Readiness();
  const newConnections = new ConnectionProbe({ connectionString: databaseUrl });
  readiness.addRequired('postgres', async () => {
    await Promise.all([pool.query('select 1'), newConnections.check()]);
    return { ok: true };
  });
  readiness.addRequired('event_store', () => store.readHead(MISSING_STREAM).then(() => ({ ok: true })));
  readiness.addRequired('release', async () => {
    const accepted = await loadAcceptedContracts(pool);
    return { ok: accepted !== undefined && isContractAccepted(accepted), version: RELEASE.version };
  });
  readiness.addOptional('read_models', async () => {
    const [stopped, incomplete] = await Promise.all([listBlockedProjections(pool), countIncompleteStreams(pool)]);
    return {
      ok: stopped.length === 0 && incomplete === 0,
      incomplete_streams: incomplete,
      stopped: stopped.map(({ projection, position }) => `${projection} at ${position}`),
    };
  });
  readiness.addRequired('clock', () => ({ ok: clock.isReliable(), skew_ms: clock.skewMs, ahead_ms: clock.leadMs }));
  readiness.addOptional('credentials', () => {
    const outages = problems.listOutages();
    return {
      ok: Object.keys(outages).length === 0,
      rejected: problems.listRejected(),
      outages,
      failures: problems.failures,
      unserved: problems.listUnservedModels(),
    };
  });
  return readiness;
}

async function openClock(role: ProcessRole, foundation: Foundation, pool: pg.Pool): Promise<StoreClock> {
  const options = {
    queryStoreTime: createStoreTimeQuery(pool),
    maxSkewMs: foundation.settings.maxClockSkewMs,
    reportError: foundation.runtime.reportError,
  };
  return role.closeOnExit(
    await foundation.startDeadline.waitFor('the clock of the database', () => StoreClock.open(options)),
  );
}

/** Opens a connection pool that is closed at the end of the role. */
export async function openPool(role: ProcessRole, connectionString: string): Promise<pg.Pool> {
  const pool = connect({
    connectionString,
    name: role.name,
    onIdleError: (err) => role.log.warn({ err }, 'an idle database connection was lost'),
  });
  await role.closeOnExit({ close: () => pool.end() });
  return withUnavailableErrors(pool);
}
