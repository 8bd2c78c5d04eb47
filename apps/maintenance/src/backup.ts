import { parseArgs } from 'node:util';
import { readSettings, type Settings, StartError } from '#foundation';
import { checkBackup } from './check.ts';
import { createBackup } from './create.ts';
import { withDatabases } from './databases.ts';
import { finishRestore } from './finish-restore.ts';
import type { Manifest } from './manifest.ts';
import { restoreBackup } from './restore.ts';

const USAGE = 'Usage: npm run backup -- create <directory> | check <directory> | restore <directory>';

/** Resolves to false if the command found a problem. */
type Command = (settings: Settings, directory: string) => Promise<boolean>;

const COMMANDS: Readonly<Record<string, Command>> = {
  create: async (settings, directory) => {
    const eventStoreName = settings.eventStoreUrl === undefined ? 'PostgreSQL' : 'EventStoreDB';
    await withDatabases(settings, async (databases) =>
      printManifest(await createBackup(databases, directory, eventStoreName)),
    );
    return true;
  },
  check: async (_, directory) => {
    printManifest(await checkBackup(directory));
    return true;
  },
  restore: (settings, directory) =>
    withDatabases(settings, async (databases, databaseUrl) => {
      printManifest(await restoreBackup(databases, directory));
      return finishRestore({ ...settings, databaseUrl }, print);
    }),
};

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printManifest({ createdAt, tables, masterKeys, factsIn }: Manifest): void {
  for (const { name, rows } of tables) print(`${name}: ${rows} rows`);
  const keys = masterKeys.join(', ') || '(none)';
  print(`created at ${createdAt} under the master keys ${keys}, which the backup does not contain`);
  if (factsIn === 'EventStoreDB') print('the events are in EventStoreDB, not in this backup');
}

/** Runs the backup command line: saves the data that cannot be rebuilt, checks a backup, or restores it. */
async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [command = '', directory, ...extra] = positionals;
  const runCommand = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!runCommand || directory === undefined || extra.length > 0) throw new StartError(USAGE);
  if (!(await runCommand(readSettings(process.env), directory))) process.exitCode = 1;
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
