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

/** Saves what cannot be made again, reads whether it is whole, and puts it back. */
async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [command = '', directory, ...extra] = positionals;
  const runCommand = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!runCommand || directory === undefined || extra.length > 0) throw new StartError(USAGE);
  const { createdAt, tables, masterKeys, factsIn } = await runCommand(readSettings(process.env), directory);
  for (const { name, rows } of tables) process.stdout.write(`${name}: ${rows} rows\n`);
  process.stdout.write(
    `of ${createdAt}, under the master keys ${masterKeys.join(', ') || '(none)'}, which are not in it\n`,
  );
  if (factsIn === 'EventStoreDB') process.stdout.write('the facts are in EventStoreDB, and not in it\n');
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
