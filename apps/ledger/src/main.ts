import { parseArgs } from 'node:util';
import { readPayments } from '#catalogue';
import { createLog, openFoundation, readSettings, StartError } from '#infra';
import { replay } from './replay.ts';
import { verify } from './verify.ts';
import { wallets } from './wallets.ts';

const USAGE = 'Usage: npm run ledger -- verify | replay [--until <ISO 8601 time or position>] | wallets [--until …]';

/** The finance command line: proves the books from the events alone. */
async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { until: { type: 'string' } } });
  const [command, ...rest] = positionals;
  const known = command === 'replay' || command === 'wallets' || (command === 'verify' && values.until === undefined);
  if (!known || rest.length > 0) throw new StartError(USAGE);
  const settings = readSettings(process.env);
  const foundation = await openFoundation(settings, createLog('warn'));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const { store } = foundation;
  try {
    if (command === 'replay') await replay(store, values.until, print);
    else if (command === 'wallets')
      await wallets({ store, ...readPayments(settings.catalogueDir) }, values.until, print);
    else if (!(await verify(foundation, print))) process.exitCode = 1;
  } finally {
    await foundation.close();
  }
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
