export { isContractAccepted, loadAcceptedContracts } from './accepted-contracts.ts';
export { ConnectionGuard, type ConnectionLimits, interruptAfter, SERVER_TIMEOUTS } from './connections.ts';
export { type DrainOptions, waitForDrain } from './drain.ts';
export { dropCaches } from './drop-stale-caches.ts';
export { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.ts';
export { Foundation, foundationMigrations, openFoundation, prepareTables } from './foundation.ts';
export {
  assertKeyRingComplete,
  assertNoSecretsYet,
  type KnownMasterKey,
  listKnownMasterKeys,
  registerMasterKeys,
  retireMasterKey,
} from './known-master-keys.ts';
export {
  competeForLease,
  issueFencingToken,
  type LeaderElectionOptions,
  LeaseStatus,
  leaseMigrations,
  listUnheldLeases,
  runWhileLeader,
  StalledLeaderError,
} from './lease.ts';
export { createLog, type Log } from './log.ts';
export { findMasterKeys, readOrCreateMasterKeys } from './master-key.ts';
export {
  type Migration,
  type MigrationPlan,
  migrate,
  migratePartly,
  type PlannedMigration,
  planMigrations,
  prepareDatabase,
} from './migrate.ts';
export { findMissingRight, formatFailure } from './missing-right.ts';
export { openWithCleanup } from './open-with-cleanup.ts';
export { type ReadyFields, type RunningProcess, runProcess } from './process.ts';
export { findStaleProcesses, ProcessPresence } from './process-presence.ts';
export type { Progress, ProgressTask, StartProgress } from './progress.ts';
export type { ProviderSettingsSpec } from './provider-settings.ts';
export { formatRelease, RELEASE, type Release } from './release.ts';
export { readSetting } from './secret-files.ts';
export { SecretWatch, type SettingsListener } from './secret-watch.ts';
export { SettingError } from './setting-types.ts';
export { SETTINGS, type Settings } from './settings.ts';
export { readSettings, SettingsReader } from './settings-reader.ts';
export type { ReaderProgress, WorkProbe } from './stall-detector.ts';
export { isTransient, NotReadyError, StartDeadline } from './start-deadline.ts';
export { StartError } from './start-error.ts';
export { createReplayReader, trackProgress } from './track-progress.ts';
export { listUnknownSettings } from './unknown-settings.ts';
export { listUnsafeSettings } from './unsafe-settings.ts';
