import '#foundation/node-version';
import { parseArgs } from 'node:util';
import { formatFailure, readSettings, type Settings, StartError } from '#foundation';
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

const USAGE =
  'Usage: npm run backup -- create <directory> | check <directory> | restore <directory> | keys | list | fetch <directory> [<backup>] | rehearse';

interface Command {
  /** The allowed numbers of positional arguments after the name of the command. */
  readonly operands: readonly number[];
  /** Resolves to false if the command found a problem. */
  run(settings: Settings, directory: string, backup?: string): Promise<boolean>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  create: {
    operands: [1],
    run: async (settings, directory) => {
      await withDatabases(settings, async (databases) =>
        printManifest(await createBackup(databases, directory, nameEventStore(settings))),
      );
      return true;
    },
  },
  check: {
    operands: [1],
    run: async (_, directory) => {
      printManifest(await checkBackup(directory));
      return true;
    },
  },
  restore: {
    operands: [1],
    run: (settings, directory) =>
      withDatabases(settings, async (databases, databaseUrl) => {
        printManifest(await restoreBackup(databases, directory));
        return finishRestore({ ...settings, databaseUrl }, print);
      }),
  },
  keys: {
    operands: [0],
    run: async () => {
      const { publicKey, secretKey } = await generateKeys();
      print(`BACKUP_PUBLIC_KEY=${publicKey}`);
      print(`BACKUP_SECRET_KEY=${secretKey}`);
      return true;
    },
  },
  list: {
    operands: [0],
    run: (settings) =>
      withStore(settings, async (store) => {
        for (const { name, isComplete } of listBackups(await store.list()))
          print(isComplete ? name : `${name} (incomplete)`);
        return true;
      }),
  },
  fetch: {
    operands: [1, 2],
    run: (settings, directory, backup) =>
      withStore(settings, async (store) => {
        print(await fetchBackup(store, createDecryption(settings.backupSecretKey), directory, backup));
        return true;
      }),
  },
  rehearse: {
    operands: [0],
    run: (settings) =>
      withStore(settings, (store) => rehearse(settings, store, createDecryption(settings.backupSecretKey), print)),
  },
};

async function withStore<T>(settings: Settings, work: (store: BackupStore) => Promise<T>): Promise<T> {
  const store = await openBackupStore(settings);
  return work(store).finally(() => store.close());
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

/** Runs the backup command line: makes, checks and restores backups, and reads scheduled ones. */
async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [name = '', directory = '', backup] = positionals;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command?.operands.includes(positionals.length - 1)) throw new StartError(USAGE);
  if (!(await command.run(readSettings(process.env), directory, backup))) process.exitCode = 1;
}

await main().catch((error) => {
  process.stderr.write(`${formatFailure(error)}\n`);
  process.exitCode = 1;
});
