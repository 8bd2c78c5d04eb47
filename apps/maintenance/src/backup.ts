import { parseArgs } from 'node:util';
import { readSettings, type Settings, StartError } from '#foundation';
import { checkBackup } from './check.ts';
import { createBackup } from './create.ts';
import { withDatabases } from './databases.ts';
import type { Manifest } from './manifest.ts';
import { restoreBackup } from './restore.ts';

const USAGE = 'Usage: npm run backup -- create <directory> | check <directory> | restore <directory>';

const COMMANDS: Readonly<Record<string, (settings: Settings, directory: string) => Promise<Manifest>>> = {
  create: (settings, directory) => {
    const eventStoreName = settings.eventStoreUrl === undefined ? 'PostgreSQL' : 'EventStoreDB';
    return withDatabases(settings, (databases) => createBackup(databases, directory, eventStoreName));
  },
  check: (_, directory) => checkBackup(directory),
  restore: (settings, directory) => withDatabases(settings, (databases) => restoreBackup(databases, directory)),
};

/** Runs the backup command line: saves the data that cannot be rebuilt, checks a backup, or restores it. */
async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [command = '', directory, ...extra] = positionals;
  const runCommand = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!runCommand || directory === undefined || extra.length > 0) throw new StartError(USAGE);
  const { createdAt, tables, masterKeys, factsIn } = await runCommand(readSettings(process.env), directory);
  for (const { name, rows } of tables) process.stdout.write(`${name}: ${rows} rows\n`);
  process.stdout.write(
    `created at ${createdAt} under the master keys ${masterKeys.join(', ') || '(none)'}, which the backup does not contain\n`,
  );
  if (factsIn === 'EventStoreDB') process.stdout.write('the events are in EventStoreDB, not in this backup\n');
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
