import { migrate, readSettings } from '#foundation';
import { withDatabases } from './databases.ts';

/** Applies the migrations of this version to the databases. Roles may be running. */
async function main(): Promise<void> {
  await withDatabases(readSettings(process.env), async (databases) => {
    for (const { url, migrations } of databases) await migrate(url, migrations);
  });
  process.stdout.write('The databases are up to date with this version.\n');
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
