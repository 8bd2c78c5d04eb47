import { migrate, readSettings } from '#foundation';
import { withDatabases } from './databases.ts';

/** Changes the tables of the databases as this version of the program needs them, beside running roles. */
async function main(): Promise<void> {
  await withDatabases(readSettings(process.env), async (databases) => {
    for (const { url, migrations } of databases) await migrate(url, migrations);
  });
  process.stdout.write('The databases are as this version needs them.\n');
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
