import '#foundation/node-version';
import { migrate, planMigrations, RELEASE, readSettings } from '#foundation';
import { createProgram, runMain, startProgress } from '#foundation/command-line';
import { listAddresses } from '#postgres';
import { withDatabases } from './databases.ts';
import { formatPlan } from './plan.ts';

const program = createProgram(
  'npm run migrate --',
  'Applies the migrations of this version to the databases. Roles may be running.',
);
program.option('--plan', 'Prints what the migrations would do, and changes nothing.');
program.action(migrateDatabases);

async function migrateDatabases({ plan }: { readonly plan?: boolean }): Promise<void> {
  await withDatabases(readSettings(process.env), async (databases) => {
    for (const { url, migrations } of databases) {
      if (plan) process.stdout.write(formatPlan(toDatabaseName(url), await planMigrations(url, migrations)));
      else await migrate(url, migrations, { startProgress });
    }
  });
  if (!plan) process.stdout.write(`The databases are up to date with version ${RELEASE.version}.\n`);
}

function toDatabaseName(url: string): string {
  return new URL(listAddresses(url)[0] as string).pathname.slice(1);
}

await runMain(program);
