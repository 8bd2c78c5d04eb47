import { CATEGORIES, EVENT_SCHEMA } from '#domain';
import {
  EventStoreAccessError,
  type EventStoreAddress,
  eventStoreMigrations,
  formatEventStoreDbNodes,
  type OpenedEventStore,
  openEventStore,
} from '#eventstore';
import { ActionRequiredError, type Runtime } from '#kernel';
import { projectionMigrations } from '#projections';
import { createNodeRuntime } from '#runtime';
import { dropCachesNewerThanLog } from './drop-stale-caches.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.ts';
import { assertSameEventStore, originMigrations } from './event-store-identity.ts';
import { masterKeyMigrations } from './known-master-keys.ts';
import { leaseMigrations } from './lease.ts';
import type { Log } from './log.ts';
import { type Migration, prepareDatabase } from './migrate.ts';
import { findMissingRight, GRANT_ADVICE } from './missing-right.ts';
import { openWithCleanup } from './open-with-cleanup.ts';
import { presenceMigrations } from './process-presence.ts';
import { assertSessionPooling } from './sessions.ts';
import type { Settings } from './settings.ts';
import { isRejection, StartDeadline, type StartStep } from './start-deadline.ts';
import { StartError } from './start-error.ts';
import { createThrottledReporter } from './throttled-error-reporter.ts';

/** How often the embedded database is checked. */
const LIVENESS_INTERVAL_MS = 500;

/** Migrations of the tables that all roles use. */
export const foundationMigrations: readonly Migration[] = [
  ...eventStoreMigrations,
  ...masterKeyMigrations,
  ...leaseMigrations,
  ...presenceMigrations,
  ...projectionMigrations,
  ...originMigrations,
];

/** The dependencies of every role: settings, log, a migrated database and the event store. One per process. */
export abstract class Foundation {
  abstract readonly settings: Settings;
  abstract readonly log: Log;
  abstract readonly databaseUrl: string;
  abstract readonly store: OpenedEventStore;
  abstract readonly runtime: Runtime;
  /** Everything that the rest of the start needs and that may be late is waited for under this deadline. */
  abstract readonly startDeadline: StartDeadline;
  /** The migrations that the database had when this process prepared it, by id. */
  abstract readonly appliedMigrations: ReadonlySet<string>;
  abstract close(): Promise<void>;
}

/**
 * Waits for a database or an event store that does not respond or is starting up, until `START_TIMEOUT_MS`.
 * @throws StartError if the database or the event store cannot be used
 */
export function openFoundation(settings: Settings, log: Log): Promise<Foundation> {
  const startDeadline = new StartDeadline(settings.startTimeoutMs, (sentence) => log.warn({}, sentence));
  return openWithCleanup(async (resources) => {
    resources.defer(() => startDeadline.end());
    const embedded = settings.databaseUrl
      ? undefined
      : await startDeadline.waitFor('the embedded database', ({ remainingMs }) =>
          startEmbeddedPostgres(settings.dataDir, [], remainingMs),
        );
    if (embedded) {
      resources.defer(() => embedded.close());
      const livenessTimer = setInterval(() => assertRunning(embedded), LIVENESS_INTERVAL_MS).unref();
      resources.defer(() => clearInterval(livenessTimer));
    }
    const databaseUrl = settings.databaseUrl ?? (embedded?.url as string);
    const reporter = createThrottledReporter((problem, err) => {
      const lacksRight = findMissingRight(err) !== undefined;
      const level = lacksRight || err instanceof ActionRequiredError ? 'error' : 'warn';
      log[level]({ err }, lacksRight ? `${problem}; the database user lacks a right: ${GRANT_ADVICE}` : problem);
    });
    resources.defer(() => reporter.close());
    const runtime = createNodeRuntime(reporter.report);
    const which = settings.databaseUrl ? 'database in DATABASE_URL' : 'embedded database';
    const appliedMigrations = await startDeadline
      .waitFor(`the ${which}`, (step) => prepare(databaseUrl, settings, step))
      .catch((error) => {
        if (error instanceof StartError) throw error;
        throw new StartError(`The ${which} cannot be prepared: ${error.message || error.code}.`, { cause: error });
      });
    const { eventStoreUrl } = settings;
    const store = openStore({
      eventStoreUrl,
      databaseUrl,
      categories: CATEGORIES,
      eventSchema: EVENT_SCHEMA,
      onProblem: runtime.reportError,
    });
    resources.defer(() => store.close());
    const where = eventStoreUrl === undefined ? 'in PostgreSQL' : `at ${formatEventStoreDbNodes(eventStoreUrl)}`;
    await startDeadline
      .waitFor(`the event store ${where}`, () => store.check())
      .catch((cause) => {
        if (cause instanceof StartError) throw cause;
        throw new StartError(`The event store ${where} ${explainStoreError(cause)}.`, { cause });
      });
    const lostPositions = await startDeadline.waitFor('a comparison of database and event store', async () => {
      await assertSameEventStore(databaseUrl, store.rawReader);
      return dropCachesNewerThanLog(databaseUrl, {
        isInPostgres: eventStoreUrl === undefined,
        readEndPosition: () => store.readLastPosition(),
      });
    });
    if (lostPositions) {
      const { logEnd, cacheEnd } = lostPositions;
      log.warn(
        {},
        `the event store was restored to an earlier state: its last event has the position ${logEnd}, but read models or checkpoints include events up to ${cacheEnd}; rebuilding read models and other caches`,
      );
    }
    return { settings, log, databaseUrl, store, runtime, startDeadline, appliedMigrations };
  });
}

/** @throws StartError if the client of EventStoreDB cannot be created, for example because a certificate is missing */
function openStore(address: EventStoreAddress): OpenedEventStore {
  try {
    return openEventStore(address);
  } catch (cause) {
    if (address.eventStoreUrl === undefined) throw cause;
    throw new StartError(`EVENTSTORE_URL cannot be used: ${(cause as Error).message.replace(/\.$/, '')}.`, { cause });
  }
}

async function prepare(databaseUrl: string, settings: Settings, step: StartStep): Promise<ReadonlySet<string>> {
  if (settings.databaseUrl) await assertSessionPooling(databaseUrl); // the embedded database has no pooler
  return prepareDatabase(databaseUrl, foundationMigrations, settings.migrate, step);
}

/** The tables that each start prepares last. Those of one start would otherwise wait for each other's lock. */
const lastTables = new WeakMap<StartDeadline, Promise<unknown>>();

/**
 * Prepares tables that only some roles use, within the deadline of their start, one after the other. Does nothing if the
 * database had all of them at the start.
 */
export async function prepareTables(foundation: Foundation, migrations: readonly Migration[]): Promise<void> {
  const { databaseUrl, settings, startDeadline, appliedMigrations } = foundation;
  if (migrations.every(({ id }) => appliedMigrations.has(id))) return;
  const prepare = () =>
    startDeadline.waitFor('the tables of the database', (step) =>
      prepareDatabase(databaseUrl, migrations, settings.migrate, step),
    );
  const prepared = (lastTables.get(startDeadline) ?? Promise.resolve()).then(prepare);
  lastTables.set(startDeadline, prepared);
  await prepared;
}

function explainStoreError(error: unknown): string {
  if (error instanceof EventStoreAccessError) return error.message;
  const reason = error instanceof Error ? error.cause : undefined;
  return isRejection(reason) ? `rejects a read: ${reason.message}` : 'does not respond';
}

/** Ends the process by throwing in a timer. Its supervisor then restarts it, and with it the database. */
function assertRunning(embedded: EmbeddedPostgres): void {
  if (!embedded.isRunning()) throw new StartError('The embedded database has stopped; start the process again.');
}
