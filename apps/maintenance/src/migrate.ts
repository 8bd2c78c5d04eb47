import '#foundation/node-version';
import { parseArgs } from 'node:util';
import { formatFailure, migrate, planMigrations, RELEASE, readSettings, StartError } from '#foundation';
import { listAddresses } from '#postgres';
import { withDatabases } from './databases.ts';
import { formatPlan } from './plan.ts';

const USAGE = 'Usage: npm run migrate [-- --plan]';

/** Applies the migrations of this version to the databases, or prints what they would do. Roles may be running. */
async function main(): Promise<void> {
  const { plan } = parseArguments();
  await withDatabases(readSettings(process.env), async (databases) => {
    for (const { url, migrations } of databases) {
      if (plan) process.stdout.write(formatPlan(toDatabaseName(url), await planMigrations(url, migrations)));
      else await migrate(url, migrations);
    }
  });
  if (!plan) process.stdout.write(`The databases are up to date with version ${RELEASE.version}.\n`);
}

function toDatabaseName(url: string): string {
  return new URL(listAddresses(url)[0] as string).pathname.slice(1);
}

function parseArguments(): { readonly plan?: boolean | undefined } {
  try {
    return parseArgs({ options: { plan: { type: 'boolean' } } }).values;
  } catch {
    throw new StartError(USAGE);
  }
}

await main().catch((error) => {
  process.stderr.write(`${formatFailure(error)}\n`);
  process.exitCode = 1;
});
