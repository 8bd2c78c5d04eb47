import { parseArgs } from 'node:util';
import { createLog, openFoundation, readSettings, StartError } from '#infra';
import { replay } from './replay.ts';
import { verify } from './verify.ts';

const USAGE = 'Usage: npm run ledger -- verify | replay [--until <ISO 8601 time or position>]';

/** The finance command line: proves the books from the events alone. */
async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { until: { type: 'string' } } });
  const [command, ...rest] = positionals;
  const known = command === 'replay' || (command === 'verify' && values.until === undefined);
  if (!known || rest.length > 0) throw new StartError(USAGE);
  const foundation = await openFoundation(readSettings(process.env), createLog('warn'));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  try {
    if (command === 'replay') await replay(foundation.store, values.until, print);
    else if (!(await verify(foundation, print))) process.exitCode = 1;
  } finally {
    await foundation.close();
  }
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
