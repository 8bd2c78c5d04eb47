import { parseArgs } from 'node:util';
import { readPayments } from '#catalogue';
import { createLog, type Foundation, openFoundation, readSettings, StartError } from '#infra';
import { autoTopup } from './auto-topup.ts';
import { challenges } from './challenges.ts';
import { closeJob, jobs } from './jobs.ts';
import { forgetKeyOf, keys } from './keys.ts';
import { replay } from './replay.ts';
import { verify } from './verify.ts';
import { wallets } from './wallets.ts';

interface Given {
  readonly foundation: Foundation;
  /** What stands behind the command; '' where it takes nothing. */
  readonly named: string;
  readonly until: string | undefined;
  readonly cost: string | undefined;
  print(line: string): void;
}

interface Command {
  /** What stands behind the command, as the usage says it. */
  readonly named?: string;
  readonly option?: { readonly name: 'until' | 'cost'; readonly usage: string; readonly isNeeded?: true };
  /** Returns false when what it looks at is not as it should be. */
  run(given: Given): Promise<unknown>;
}

const UNTIL = { name: 'until', usage: '--until <ISO 8601 time or position>' } as const;

const COMMANDS: Readonly<Record<string, Command>> = {
  verify: { run: ({ foundation, print }) => verify(foundation, print) },
  replay: { option: UNTIL, run: ({ foundation, until, print }) => replay(foundation.store, until, print) },
  wallets: {
    option: UNTIL,
    run: ({ foundation: { store, settings }, until, print }) =>
      wallets({ store, ...readPayments(settings.catalogueDir) }, until, print),
  },
  autotopup: { named: 'account', run: ({ foundation, named, print }) => autoTopup(foundation.store, named, print) },
  jobs: { run: ({ foundation, print }) => jobs(foundation, print) },
  'jobs close': {
    named: 'job',
    option: { name: 'cost', usage: '--cost <USD or none>', isNeeded: true },
    run: ({ foundation, named, cost = '', print }) => closeJob(foundation, named, cost, print),
  },
  challenges: { run: ({ foundation, print }) => challenges(foundation, print) },
  keys: { run: ({ foundation, print }) => keys(foundation, print) },
  'keys forget': { named: 'fingerprint', run: ({ foundation, named, print }) => forgetKeyOf(foundation, named, print) },
};

function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, { named, option }]) => {
    const optional = option && (option.isNeeded ? option.usage : `[${option.usage}]`);
    return [name, named && `<${named}>`, optional].filter(Boolean).join(' ');
  });
  return `Usage: npm run ledger -- ${lines.join(' | ')}`;
}

/** The command that the words begin with, and what stands behind it. @throws StartError with the usage */
function chosen(words: readonly string[], options: { readonly until?: string; readonly cost?: string }) {
  const [name, rest] = [2, 1].flatMap((length) => {
    const found = words.slice(0, length).join(' ');
    return words.length >= length && Object.hasOwn(COMMANDS, found) ? [[found, words.slice(length)] as const] : [];
  })[0] ?? ['', []];
  const command = COMMANDS[name];
  const { named, option } = command ?? {};
  const isOptionRight = (['until', 'cost'] as const).every((each) =>
    option?.name === each ? !option.isNeeded || options[each] !== undefined : options[each] === undefined,
  );
  if (!command || rest.length !== (named ? 1 : 0) || !isOptionRight) throw new StartError(usage());
  return { command, named: rest[0] ?? '' };
}

/** The finance command line: proves the books from the events alone. */
async function main(): Promise<void> {
  const options = { until: { type: 'string' }, cost: { type: 'string' } } as const;
  const { positionals, values } = parseArgs({ allowPositionals: true, options });
  const { until, cost } = values;
  const { command, named } = chosen(positionals, values);
  const foundation = await openFoundation(readSettings(process.env), createLog('warn'));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  try {
    if ((await command.run({ foundation, named, until, cost, print })) === false) process.exitCode = 1;
  } finally {
    await foundation.close();
  }
}

await main().catch((error) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
