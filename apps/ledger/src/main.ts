import { parseArgs } from 'node:util';
import { readPayments } from '#catalogue';
import { createLog, openFoundation, readSettings, StartError } from '#infra';
import { autoTopup } from './auto-topup.ts';
import { replay } from './replay.ts';
import { verify } from './verify.ts';
import { wallets } from './wallets.ts';

const USAGE =
  'Usage: npm run ledger -- verify | replay [--until <ISO 8601 time or position>] | wallets [--until …] | autotopup <account>';

/** The finance command line: proves the books from the events alone. */
async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { until: { type: 'string' } } });
  const [command = '', ...rest] = positionals;
  const { until } = values;
  const takesTime = command === 'replay' || command === 'wallets';
  const named = command === 'autotopup' ? 1 : 0;
  const known = takesTime || ((command === 'verify' || command === 'autotopup') && until === undefined);
  if (!known || rest.length !== named) throw new StartError(USAGE);
  const settings = readSettings(process.env);
  const foundation = await openFoundation(settings, createLog('warn'));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const { store } = foundation;
  try {
    if (command === 'replay') await replay(store, until, print);
    else if (command === 'wallets') await wallets({ store, ...readPayments(settings.catalogueDir) }, until, print);
    else if (command === 'autotopup') await autoTopup(store, rest[0] as string, print);
    else if (!(await verify(foundation, print))) process.exitCode = 1;
  } finally {
    await foundation.close();
  }
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
