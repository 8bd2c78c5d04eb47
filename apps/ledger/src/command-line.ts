import { parseArgs } from 'node:util';
import { verify } from '#audit';
import { readPayments } from '#catalogue';
import { createLog, type Foundation, openFoundation, readSettings, StartError } from '#foundation';
import { resolveAccountId, printAccount as showAccount } from './account.ts';
import { printAccruals } from './accruals.ts';
import { printAutoTopups } from './auto-topup.ts';
import { printChallenges } from './challenges.ts';
import { closeJobCost, printJobs } from './jobs.ts';
import { printMasterKeys, retireKeyByFingerprint } from './keys.ts';
import { closeContests, creditExcess, printPayments, recordExcessRefund } from './payments.ts';
import { replay } from './replay.ts';
import { skipBlockingEvent } from './skip.ts';
import { printWallets } from './wallets.ts';

const OPTION_NAMES = ['since', 'until', 'cost', 'why'] as const;
type OptionName = (typeof OPTION_NAMES)[number];

interface CommandInput {
  readonly foundation: Foundation;
  /** The positional arguments after the command name, as many as the command requires. */
  readonly operands: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly cost?: string;
  readonly why?: string;
  print(line: string): void;
}

interface CommandOption {
  readonly name: OptionName;
  readonly usage: string;
  readonly isRequired?: true;
}

interface Command {
  /** Names of the positional arguments in the usage text. */
  readonly operandNames?: readonly string[];
  readonly options?: readonly CommandOption[];
  /** Resolves to false if the command found a problem. */
  run(input: CommandInput): Promise<unknown>;
}

const SINCE_OPTION = { name: 'since', usage: '--since <ISO 8601 time>' } as const;
const UNTIL_OPTION = { name: 'until', usage: '--until <ISO 8601 time or position>' } as const;

const COMMANDS: Readonly<Record<string, Command>> = {
  verify: { run: ({ foundation, print }) => verify(foundation, print) },
  replay: { options: [UNTIL_OPTION], run: ({ foundation, until, print }) => replay(foundation.store, until, print) },
  wallets: {
    options: [UNTIL_OPTION],
    run: ({ foundation: { store, settings }, until, print }) =>
      printWallets({ store, ...readPayments(settings.catalogueDir) }, until, print),
  },
  accruals: {
    options: [SINCE_OPTION, UNTIL_OPTION],
    run: ({ foundation, since, until, print }) => printAccruals(foundation.store, { since, until }, print),
  },
  autotopup: {
    operandNames: ['account'],
    run: async ({ foundation, operands: [account = ''], print }) =>
      printAutoTopups(foundation.store, (await resolveAccountId(foundation, account)) ?? account, print),
  },
  account: {
    operandNames: ['credit_id'],
    run: ({ foundation, operands: [creditId = ''], print }) => showAccount(foundation, creditId, print),
  },
  jobs: { run: ({ foundation, print }) => printJobs(foundation, print) },
  'jobs close': {
    operandNames: ['job'],
    options: [{ name: 'cost', usage: '--cost <USD or none>', isRequired: true }],
    run: ({ foundation, operands: [job = ''], cost = '', print }) => closeJobCost(foundation, job, cost, print),
  },
  payments: { run: ({ foundation, print }) => printPayments(foundation, print) },
  'payments credit': {
    operandNames: ['top-up', 'payment'],
    run: ({ foundation, operands: [topupId = '', payment = ''], print }) =>
      creditExcess(foundation, topupId, payment, print),
  },
  'payments refund': {
    operandNames: ['top-up', 'payment'],
    options: [{ name: 'why', usage: '--why <text>', isRequired: true }],
    run: ({ foundation, operands: [topupId = '', paymentKey = ''], why = '', print }) =>
      recordExcessRefund(foundation, { topupId, paymentKey, why }, print),
  },
  'payments close': {
    operandNames: ['payment'],
    options: [{ name: 'why', usage: '--why <text>', isRequired: true }],
    run: ({ foundation, operands: [paymentKey = ''], why = '', print }) =>
      closeContests(foundation, { paymentKey, why }, print),
  },
  challenges: { run: ({ foundation, print }) => printChallenges(foundation, print) },
  keys: { run: ({ foundation, print }) => printMasterKeys(foundation, print) },
  'keys forget': {
    operandNames: ['fingerprint'],
    run: ({ foundation, operands: [fingerprint = ''], print }) =>
      retireKeyByFingerprint(foundation, fingerprint, print),
  },
  skip: {
    operandNames: ['read model', 'position'],
    options: [{ name: 'why', usage: '--why <text>', isRequired: true }],
    run: ({ foundation, operands: [readModel = '', position = ''], why = '', print }) =>
      skipBlockingEvent(foundation, { readModel, position, reason: why }, print),
  },
};

function formatUsage(): string {
  const lines = Object.entries(COMMANDS).map(([name, { operandNames = [], options = [] }]) => {
    const optionUsages = options.map(({ usage, isRequired }) => (isRequired ? usage : `[${usage}]`));
    return [name, ...operandNames.map((operandName) => `<${operandName}>`), ...optionUsages].join(' ');
  });
  return `Usage: npm run ledger -- ${lines.join(' | ')}`;
}

/**
 * Returns the command and its positional arguments.
 * @throws StartError with the usage text if there is no such command, or it has other arguments or options
 */
function parseCommand(positionals: readonly string[], values: { readonly [name in OptionName]?: string }) {
  const [name, rest] = [2, 1].flatMap((length) => {
    const commandName = positionals.slice(0, length).join(' ');
    return positionals.length >= length && Object.hasOwn(COMMANDS, commandName)
      ? [[commandName, positionals.slice(length)] as const]
      : [];
  })[0] ?? ['', []];
  const command = COMMANDS[name];
  const { operandNames = [], options = [] } = command ?? {};
  const hasValidOptions = OPTION_NAMES.every((optionName) => {
    const option = options.find(({ name }) => name === optionName);
    return option ? !option.isRequired || values[optionName] !== undefined : values[optionName] === undefined;
  });
  if (!command || rest.length !== operandNames.length || !hasValidOptions) throw new StartError(formatUsage());
  return { command, operands: rest };
}

/**
 * Runs a command of the ledger command line, such as `verify` or `replay`.
 * @param args the arguments after `npm run ledger --`
 * @returns false if the command found a problem
 * @throws Error whose message is for the operator, such as a StartError or an error of `parseArgs`
 */
export async function runLedgerCommand(
  args: string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (line: string) => void,
): Promise<boolean> {
  const options = {
    since: { type: 'string' },
    until: { type: 'string' },
    cost: { type: 'string' },
    why: { type: 'string' },
  } as const;
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
  const { command, operands } = parseCommand(positionals, values);
  const foundation = await openFoundation(readSettings(env), createLog('warn'));
  try {
    return (await command.run({ foundation, operands, ...values, print })) !== false;
  } finally {
    await foundation.close();
  }
}
