import '#foundation/node-version';
import { readSettings, type Settings } from '#foundation';
import { createProgram, runMain, startProgress } from '#foundation/command-line';
import { checkBackup } from './check.ts';
import { createBackup } from './create.ts';
import { nameEventStore, withDatabases } from './databases.ts';
import { finishRestore } from './finish-restore.ts';
import type { Manifest } from './manifest.ts';
import { restoreBackup } from './restore.ts';
import { listBackups } from './scheduled/backup-names.ts';
import type { BackupStore } from './scheduled/backup-store.ts';
import { createDecryption, generateKeys } from './scheduled/encryption.ts';
import { fetchBackup } from './scheduled/fetch-backup.ts';
import { openBackupStore } from './scheduled/open-backup-store.ts';
import { rehearse } from './scheduled/rehearse.ts';

const program = createProgram(
  'npm run backup --',
  'Saves and restores the data in PostgreSQL that cannot be computed again, and reads scheduled backups.',
);

program
  .command('create')
  .description('Saves the data in a new directory; roles may be running.')
  .argument('<directory>')
  .action((directory: string) => {
    const settings = readSettings(process.env);
    return withDatabases(settings, async (databases) =>
      printManifest(await createBackup(databases, directory, nameEventStore(settings), startProgress)),
    );
  });

program
  .command('check')
  .description('Reads a backup completely, and checks that it is unchanged and has no gaps.')
  .argument('<directory>')
  .action(async (directory: string) => printManifest(await checkBackup(directory, startProgress)));

program
  .command('restore')
  .description('Restores a backup into empty databases, rebuilds the read models and verifies them.')
  .argument('<directory>')
  .action((directory: string) => {
    const settings = readSettings(process.env);
    return withDatabases(settings, async (databases, databaseUrl) => {
      printManifest(await restoreBackup(databases, directory, undefined, startProgress));
      reportResult(await finishRestore({ ...settings, databaseUrl }, print, startProgress));
    });
  });

program
  .command('keys')
  .description('Generates the keys that encrypt and decrypt scheduled backups.')
  .action(async () => {
    const { publicKey, secretKey } = await generateKeys();
    print(`BACKUP_PUBLIC_KEY=${publicKey}`);
    print(`BACKUP_SECRET_KEY=${secretKey}`);
  });

program
  .command('list')
  .description('Lists the scheduled backups.')
  .action(() =>
    withStore(async (store) => {
      for (const { name, isComplete } of listBackups(await store.list()))
        print(isComplete ? name : `${name} (incomplete)`);
    }),
  );

program
  .command('fetch')
  .description('Decrypts a scheduled backup, by default the newest complete one, into a new directory.')
  .argument('<directory>')
  .argument('[backup]')
  .action((directory: string, backup?: string) =>
    withStore(async (store, { backupSecretKey }) =>
      print(await fetchBackup(store, createDecryption(backupSecretKey), directory, backup)),
    ),
  );

program
  .command('rehearse')
  .description('Restores the newest scheduled backup into a scratch database, verifies it and drops the database.')
  .action(() =>
    withStore(async (store, settings) => {
      const decrypt = createDecryption(settings.backupSecretKey);
      reportResult(await rehearse(settings, { store, decrypt }, print, startProgress));
    }),
  );

async function withStore(work: (store: BackupStore, settings: Settings) => Promise<void>): Promise<void> {
  const settings = readSettings(process.env);
  const store = await openBackupStore(settings);
  await work(store, settings).finally(() => store.close());
}

/** A problem that a command found is in its output. */
function reportResult(isSuccessful: boolean): void {
  if (!isSuccessful) process.exitCode = 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printManifest({ createdAt, tables, masterKeys, factsIn }: Manifest): void {
  for (const { name, rows } of tables) print(`${name}: ${rows} rows`);
  const keys = masterKeys.join(', ') || '(none)';
  print(`created at ${createdAt} under the master keys ${keys}, which the backup does not contain`);
  if (factsIn === 'EventStoreDB') print('the events are in EventStoreDB, not in this backup');
}

await runMain(program);
