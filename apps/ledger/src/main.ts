import { parseArgs } from 'node:util';
import { readPayments } from '#catalogue';
import { createLog, openFoundation, readSettings, StartError } from '#infra';
import { autoTopup } from './auto-topup.ts';
import { challenges } from './challenges.ts';
import { closeJob, jobs } from './jobs.ts';
import { replay } from './replay.ts';
import { verify } from './verify.ts';
import { wallets } from './wallets.ts';

const USAGE =
  'Usage: npm run ledger -- verify | replay [--until <ISO 8601 time or position>] | wallets [--until …] | autotopup <account> | jobs | jobs close <job> --cost <USD or none> | challenges';

/** The finance command line: proves the books from the events alone. */
async function main(): Promise<void> {
  const options = { until: { type: 'string' }, cost: { type: 'string' } } as const;
  const { positionals, values } = parseArgs({ allowPositionals: true, options });
  const [command = '', ...rest] = positionals;
  const { until, cost } = values;
  const takesTime = command === 'replay' || command === 'wallets';
  const closes = command === 'jobs' && rest[0] === 'close';
  const named = closes ? 2 : command === 'autotopup' ? 1 : 0;
  const isKnown = takesTime || ['verify', 'autotopup', 'jobs', 'challenges'].includes(command);
  if (!isKnown || rest.length !== named || (until && !takesTime) || (cost !== undefined) !== closes)
    throw new StartError(USAGE);
  const settings = readSettings(process.env);
  const foundation = await openFoundation(settings, createLog('warn'));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const { store } = foundation;
  try {
    if (command === 'replay') await replay(store, until, print);
    else if (command === 'wallets') await wallets({ store, ...readPayments(settings.catalogueDir) }, until, print);
    else if (command === 'autotopup') await autoTopup(store, rest[0] as string, print);
    else if (closes) await closeJob(foundation, rest[1] as string, cost as string, print);
    else if (command === 'jobs') await jobs(foundation, print);
    else if (command === 'challenges') await challenges(foundation, print);
    else if (!(await verify(foundation, print))) process.exitCode = 1;
  } finally {
    await foundation.close();
  }
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
