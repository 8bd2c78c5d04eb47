import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock } from '#application';
import { Foundation, LeaseStatus, runWhileLeader } from '#foundation';
import { ProcessRole, Readiness, StoresModule } from '#modules';
import { listDatabases, nameEventStore } from './databases.ts';
import { createEncryption } from './scheduled/encryption.ts';
import { openBackupStore } from './scheduled/open-backup-store.ts';
import { ScheduledBackups } from './scheduled/scheduled-backups.ts';

/** Name of the lease under which scheduled backups are made. */
const BACKUP_LEASE = 'backup';
const DAY_MS = 86_400_000;

/** Makes backups on a schedule. The process that holds the lease makes them; others stand by. */
@Module({ imports: [StoresModule] })
export class BackupModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopController = new AbortController();
  private running: Promise<unknown> | undefined;

  constructor(
    private readonly role: ProcessRole,
    private readonly foundation: Foundation,
    private readonly clock: Clock,
    private readonly readiness: Readiness,
  ) {}

  /** @throws StartError if a setting is missing or invalid, or the place of the backups cannot be used */
  async onApplicationBootstrap(): Promise<void> {
    const { databaseUrl, settings, log, runtime, startDeadline } = this.foundation;
    const { signal } = this.stopController;
    const encrypt = createEncryption(settings.backupPublicKey);
    const backups = new ScheduledBackups({
      encrypt,
      store: await this.role.closeOnExit(
        await startDeadline.waitFor('the place of the backups', () => openBackupStore(settings)),
      ),
      databases: listDatabases(databaseUrl, settings.contentDatabaseUrl),
      eventStoreName: nameEventStore(settings),
      everyMs: settings.backupEveryMs,
      retentionMs: settings.backupRetentionDays * DAY_MS,
      clock: this.clock,
      log,
      reportError: runtime.reportError,
    });
    const leaseStatus = new LeaseStatus();
    this.readiness.addOptional('backup', () => ({
      ...backups.getStatus(),
      leading: leaseStatus.leading.length > 0,
    }));
    const election = { databaseUrl, name: BACKUP_LEASE, signal, reportError: runtime.reportError, leaseStatus };
    this.running = Promise.all([
      backups.pollStatus(signal),
      runWhileLeader(election, (lease) => [backups.run(lease.signal)]),
    ]);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopController.abort();
    await this.running;
  }
}
