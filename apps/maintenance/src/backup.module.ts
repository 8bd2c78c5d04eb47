import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock, OperatorProblems } from '#application';
import { Foundation, LeaseStatus, runWhileLeader, type Settings, waitForDrain } from '#foundation';
import { followContentCredentials, ProcessRole, Readiness, StoresModule } from '#modules';
import { listDatabases, nameEventStore } from './databases.ts';
import { createEncryption } from './scheduled/encryption.ts';
import { openBackupStore } from './scheduled/open-backup-store.ts';
import { ScheduledBackups } from './scheduled/scheduled-backups.ts';

/** Name of the lease under which scheduled backups are made. */
const BACKUP_LEASE = 'backup';
const DAY_MS = 86_400_000;
/** How long a backup that is being ended may take: a query may wait for a lock, and a write for a disk. */
const STOP_TIMEOUT_MS = 40_000;

/** Makes backups on a schedule. The process that holds the lease makes them; others stand by. */
@Module({ imports: [StoresModule] })
export class BackupModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  @Inject(OperatorProblems) private readonly problems!: OperatorProblems;
  private readonly stopController = new AbortController();
  private readonly leaseStatus = new LeaseStatus();
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
    const assertPublicKey = (next: Settings) => void createEncryption(next.backupPublicKey);
    assertPublicKey(settings);
    this.role.onSecretChange(assertPublicKey);
    const { contentDatabaseUrl } = settings;
    if (contentDatabaseUrl !== undefined) followContentCredentials(this.role, contentDatabaseUrl);
    const backups = new ScheduledBackups({
      createEncryption: () => createEncryption(settings.backupPublicKey),
      store: await this.role.closeOnExit(
        await startDeadline.waitFor('the place of the backups', () => openBackupStore(settings, this.problems)),
      ),
      databases: listDatabases(databaseUrl, contentDatabaseUrl),
      eventStoreName: nameEventStore(settings),
      everyMs: settings.backupEveryMs,
      retentionMs: settings.backupRetentionDays * DAY_MS,
      clock: this.clock,
      log,
      reportError: runtime.reportError,
    });
    const { leaseStatus } = this;
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
    const { log } = this.foundation;
    const describe = () => ({ leading: this.leaseStatus.leading });
    await waitForDrain(this.running ?? Promise.resolve(), { log, limitMs: STOP_TIMEOUT_MS, describe });
  }
}
