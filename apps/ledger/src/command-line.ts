import { parseArgs } from 'node:util';
import { readPayments } from '#catalogue';
import { createLog, type Foundation, openFoundation, readSettings, StartError } from '#foundation';
import { resolveAccountId, printAccount as showAccount } from './account.ts';
import { printAutoTopups } from './auto-topup.ts';
import { printChallenges } from './challenges.ts';
import { closeJob, printJobs } from './jobs.ts';
import { printMasterKeys, retireKeyByFingerprint } from './keys.ts';
import { replay } from './replay.ts';
import { skip } from './skip.ts';
import { verify } from './verify.ts';
import { printWallets } from './wallets.ts';

const OPTIONS = ['until', 'cost', 'why'] as const;
type Option = (typeof OPTIONS)[number];

interface Given {
  readonly foundation: Foundation;
  /** What stands behind the command: as many words as it takes. */
  readonly words: readonly string[];
  readonly until: string | undefined;
  readonly cost: string | undefined;
  readonly why: string | undefined;
  print(line: string): void;
}

interface Command {
  /** What stands behind the command, as the usage says it. */
  readonly takes?: readonly string[];
  readonly option?: { readonly name: Option; readonly usage: string; readonly isNeeded?: true };
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
      printWallets({ store, ...readPayments(settings.catalogueDir) }, until, print),
  },
  autotopup: {
    takes: ['account'],
    run: async ({ foundation, words: [account = ''], print }) =>
      printAutoTopups(foundation.store, (await resolveAccountId(foundation, account)) ?? account, print),
  },
  account: {
    takes: ['credit_id'],
    run: ({ foundation, words: [creditId = ''], print }) => showAccount(foundation, creditId, print),
  },
  jobs: { run: ({ foundation, print }) => printJobs(foundation, print) },
  'jobs close': {
    takes: ['job'],
    option: { name: 'cost', usage: '--cost <USD or none>', isNeeded: true },
    run: ({ foundation, words: [job = ''], cost = '', print }) => closeJob(foundation, job, cost, print),
  },
  challenges: { run: ({ foundation, print }) => printChallenges(foundation, print) },
  keys: { run: ({ foundation, print }) => printMasterKeys(foundation, print) },
  'keys forget': {
    takes: ['fingerprint'],
    run: ({ foundation, words: [fingerprint = ''], print }) => retireKeyByFingerprint(foundation, fingerprint, print),
  },
  skip: {
    takes: ['read model', 'position'],
    option: { name: 'why', usage: '--why <text>', isNeeded: true },
    run: ({ foundation, words: [readModel = '', position = ''], why = '', print }) =>
      skip(foundation, { readModel, position, why }, print),
  },
};

function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, { takes = [], option }]) => {
    const optional = option && (option.isNeeded ? option.usage : `[${option.usage}]`);
    return [name, ...takes.map((each) => `<${each}>`), optional].filter(Boolean).join(' ');
  });
  return `Usage: npm run ledger -- ${lines.join(' | ')}`;
}

/** The command that the words begin with, and what stands behind it. @throws StartError with the usage */
function chosen(words: readonly string[], options: { readonly [name in Option]?: string }) {
  const [name, rest] = [2, 1].flatMap((length) => {
    const found = words.slice(0, length).join(' ');
    return words.length >= length && Object.hasOwn(COMMANDS, found) ? [[found, words.slice(length)] as const] : [];
  })[0] ?? ['', []];
  const command = COMMANDS[name];
  const { takes = [], option } = command ?? {};
  const isOptionRight = OPTIONS.every((each) =>
    option?.name === each ? !option.isNeeded || options[each] !== undefined : options[each] === undefined,
  );
  if (!command || rest.length !== takes.length || !isOptionRight) throw new StartError(usage());
  return { command, words: rest };
}

/**
 * The finance command line: proves the books from the events alone.
 * @param args what stands behind `npm run ledger --`
 * @returns false when what it looked at is not as it should be
 * @throws StartError, with a sentence for whoever called it
 */
export async function ledger(
  args: string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (line: string) => void,
): Promise<boolean> {
  const options = { until: { type: 'string' }, cost: { type: 'string' }, why: { type: 'string' } } as const;
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
  const { until, cost, why } = values;
  const { command, words } = chosen(positionals, values);
  const foundation = await openFoundation(readSettings(env), createLog('warn'));
  try {
    return (await command.run({ foundation, words, until, cost, why, print })) !== false;
  } finally {
    await foundation.close();
  }
}
