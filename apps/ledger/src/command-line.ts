import { Option } from 'commander';
import { verify } from '#audit';
import { readPayments } from '#catalogue';
import { createLog, type Foundation, openFoundation, readSettings, type StartProgress } from '#foundation';
import { createProgram, runProgram } from '#foundation/command-line';
import { printAccount } from './account.ts';
import { createAccount, printAccounts } from './accounts.ts';
import { printAccruals } from './accruals.ts';
import { creditAccount, debitAccount, reverseAdjustment } from './adjustments.ts';
import { createApiKey, printApiKeys, revokeApiKey, setKeyBlock } from './api-keys.ts';
import { printAutoTopups } from './auto-topup.ts';
import { printChallenges } from './challenges.ts';
import { printCosts } from './costs.ts';
import { findAccount } from './find-account.ts';
import { printHistory } from './history.ts';
import { closeJobCost, printJobs } from './jobs.ts';
import { printMasterKeys, retireKeyByFingerprint } from './master-keys.ts';
import { closeContests, creditExcess, printPayments, recordExcessRefund } from './payments.ts';
import { replay } from './replay.ts';
import { skipBlockingEvent } from './skip.ts';
import { printWallets } from './wallets.ts';

/** All options of the commands: how they are written, and what they mean. */
const OPTIONS = {
  since: ['--since <ISO 8601 time>', 'The first time of the report; by default the time of the first event.'],
  until: ['--until <ISO 8601 time or position>', 'The last time or position of the report; by default now.'],
  cost: ['--cost <USD or none>', 'What the provider has invoiced.'],
  why: ['--why <text>', 'The reason, which is recorded.'],
  all: ['--all', 'Also lists the accounts without a name.'],
  name: ['--name <name>', 'The new name.'],
  account: ['--account <account>', 'An account: its name, id or credit_id, or the name of one of its keys.'],
  usd: ['--usd <amount>', 'An amount above 0 in USD.'],
  reason: ['--reason <text>', 'The reason, which is recorded.'],
  id: ['--id <id>', 'The id of the change: a repeated command with the same id changes nothing.'],
  actor: ['--actor <name>', 'Who runs the command; by default the user of the operating system.'],
  limit: ['--limit <USD>', 'How much the key may spend.'],
  reset: ['--reset <daily, weekly or monthly>', 'When the limit starts again.'],
  expires: ['--expires <ISO 8601 date or time>', 'When the key expires.'],
  models: ['--models <ids and patterns>', 'The models that the key may use, separated by commas.'],
  tags: ['--tags <name=value,…>', 'Tags of the key, separated by commas.'],
} as const;
type OptionName = keyof typeof OPTIONS;

/** All positional arguments of the commands, and what they mean. */
const OPERANDS = {
  account: OPTIONS.account[1],
  'credit or debit': 'The id of a credit or debit.',
  key: 'An API key: its id, or its name if no other key has it.',
  job: 'The id of a video job.',
  'top-up': 'The id of a top-up.',
  payment: 'A payment, as the list of payments names it.',
  fingerprint: 'The fingerprint of a master key.',
  'read model': 'The name of a read model.',
  position: 'The position of an event.',
} as const;

interface CommandInput {
  readonly foundation: Foundation;
  /** The positional arguments after the command name, as many as the command requires. */
  readonly operands: readonly string[];
  /** Those that the command requires are present. */
  readonly options: { readonly [name in Exclude<OptionName, 'all'>]?: string } & { readonly all?: true };
  print(line: string): void;
  readonly startProgress: StartProgress | undefined;
}

interface Command {
  /** One sentence. */
  readonly description: string;
  readonly operandNames?: readonly (keyof typeof OPERANDS)[];
  readonly required?: readonly OptionName[];
  readonly optional?: readonly OptionName[];
  /** Resolves to false if the command found a problem. */
  run(input: CommandInput): Promise<unknown>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  verify: {
    description: 'Replays all events, and compares every row of every read model with them.',
    run: ({ foundation, print, startProgress }) => verify(foundation, print, startProgress),
  },
  replay: {
    description: 'Prints the balance of every account with postings, and the trial balance.',
    optional: ['until'],
    run: ({ foundation, options: { until }, print }) => replay(foundation.store, until, print),
  },
  wallets: {
    description: 'Prints what each payment backend should hold.',
    optional: ['until'],
    run: ({ foundation: { store, settings }, options: { until }, print }) =>
      printWallets({ store, ...readPayments(settings.catalogueDir) }, until, print),
  },
  accruals: {
    description: 'Lists the provider costs that no customer has paid.',
    optional: ['since', 'until'],
    run: ({ foundation, options: { since, until }, print }) => printAccruals(foundation.store, { since, until }, print),
  },
  costs: {
    description: 'Compares the costs that providers reported with those that were calculated.',
    optional: ['since', 'until'],
    run: ({ foundation, options: { since, until }, print }) => printCosts(foundation.store, { since, until }, print),
  },
  accounts: {
    description: 'Lists the accounts with a name.',
    optional: ['all'],
    run: ({ foundation, options: { all }, print }) => printAccounts(foundation, all !== undefined, print),
  },
  'accounts create': {
    description: 'Opens an account without keys, and prints its id and, only this once, its credit_id.',
    required: ['name'],
    optional: ['actor'],
    run: ({ foundation, options: { name = '', actor }, print }) => createAccount(foundation, name, actor, print),
  },
  credit: {
    description: 'Credits an account without a payment.',
    operandNames: ['account'],
    required: ['usd', 'reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = ''], options: { usd = '', reason = '', id, actor }, print }) =>
      creditAccount(foundation, account, { usd, reason, id, actor }, print),
  },
  debit: {
    description: 'Debits an account, at most by what is available.',
    operandNames: ['account'],
    required: ['usd', 'reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = ''], options: { usd = '', reason = '', id, actor }, print }) =>
      debitAccount(foundation, account, { usd, reason, id, actor }, print),
  },
  reverse: {
    description: 'Reverses a credit or debit, completely and once.',
    operandNames: ['account', 'credit or debit'],
    required: ['reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = '', reverses = ''], options: { reason = '', id, actor }, print }) =>
      reverseAdjustment(foundation, account, { reverses, reason, id, actor }, print),
  },
  history: {
    description: 'Prints the payments, credits, debits and reversals of an account, and the sum of its charges.',
    operandNames: ['account'],
    run: ({ foundation, operands: [account = ''], print }) => printHistory(foundation, account, print),
  },
  keys: {
    description: 'Lists the API keys of an account, or of all accounts with a name.',
    optional: ['account'],
    run: ({ foundation, options: { account }, print }) => printApiKeys(foundation, account, print),
  },
  'keys create': {
    description: 'Creates an API key, and prints only its secret.',
    required: ['account', 'name'],
    optional: ['limit', 'reset', 'expires', 'models', 'tags', 'actor'],
    run: ({ foundation, options: { account = '', name = '', ...options }, print }) =>
      createApiKey(foundation, { account, name, ...options }, print),
  },
  'keys block': {
    description: 'Blocks an API key.',
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      setKeyBlock(foundation, { key, isBlocked: true, actor }, print),
  },
  'keys unblock': {
    description: 'Lifts the block of an API key.',
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      setKeyBlock(foundation, { key, isBlocked: false, actor }, print),
  },
  'keys revoke': {
    description: 'Revokes an API key permanently.',
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      revokeApiKey(foundation, { key, actor }, print),
  },
  autotopup: {
    description: 'Prints every event of the automatic top-ups of an account.',
    operandNames: ['account'],
    run: async ({ foundation, operands: [account = ''], print }) =>
      printAutoTopups(foundation.store, (await findAccount(foundation, account)).id, print),
  },
  account: {
    description: 'Prints the internal id of an account, and what the operator absorbed for it.',
    operandNames: ['account'],
    run: ({ foundation, operands: [account = ''], print }) => printAccount(foundation, account, print),
  },
  jobs: {
    description: 'Lists running video jobs, and failed jobs with an open cost.',
    run: ({ foundation, print }) => printJobs(foundation, print),
  },
  'jobs close': {
    description: 'Records what the provider has invoiced for a failed video job.',
    operandNames: ['job'],
    required: ['cost'],
    run: ({ foundation, operands: [job = ''], options: { cost = '' }, print }) =>
      closeJobCost(foundation, job, cost, print),
  },
  payments: {
    description: 'Lists payments that exceed the maximum, and contested payments.',
    run: ({ foundation, print }) => printPayments(foundation, print),
  },
  'payments credit': {
    description: 'Credits what is owed for a payment that exceeds the maximum.',
    operandNames: ['top-up', 'payment'],
    run: ({ foundation, operands: [topupId = '', payment = ''], print }) =>
      creditExcess(foundation, topupId, payment, print),
  },
  'payments refund': {
    description: 'Records that what is owed for such a payment was sent back.',
    operandNames: ['top-up', 'payment'],
    required: ['why'],
    run: ({ foundation, operands: [topupId = '', paymentKey = ''], options: { why = '' }, print }) =>
      recordExcessRefund(foundation, { topupId, paymentKey, why }, print),
  },
  'payments close': {
    description: 'Removes a contested payment from the list.',
    operandNames: ['payment'],
    required: ['why'],
    run: ({ foundation, operands: [paymentKey = ''], options: { why = '' }, print }) =>
      closeContests(foundation, { paymentKey, why }, print),
  },
  challenges: {
    description: 'Lists pay-per-request payments that are unused or became income.',
    run: ({ foundation, print }) => printChallenges(foundation, print),
  },
  'master-keys': {
    description: 'Lists the fingerprints of all master keys that the installation has used.',
    run: ({ foundation, print }) => printMasterKeys(foundation, print),
  },
  'master-keys forget': {
    description: 'Retires a lost master key.',
    operandNames: ['fingerprint'],
    run: ({ foundation, operands: [fingerprint = ''], print }) =>
      retireKeyByFingerprint(foundation, fingerprint, print),
  },
  skip: {
    description: 'Lets a read model continue after the event that blocks it.',
    operandNames: ['read model', 'position'],
    required: ['why'],
    run: ({ foundation, operands: [readModel = '', position = ''], options: { why = '' }, print }) =>
      skipBlockingEvent(foundation, { readModel, position, reason: why }, print),
  },
};

type RunCommand = (foundation: Foundation) => Promise<boolean>;

/**
 * Parses the arguments of the ledger command line, such as `verify` or `replay`.
 * @param args the arguments after `npm run ledger --`
 * @param print receives the help or the lines of the command
 * @param startProgress shows the progress of `verify`; by default nothing shows it
 * @returns a function that runs the command, and resolves to false if the command found a problem; undefined if the
 *   help was printed
 * @throws StartError with a sentence and the usage
 */
export async function parseLedgerCommand(
  args: readonly string[],
  print: (line: string) => void,
  startProgress?: StartProgress,
): Promise<RunCommand | undefined> {
  let chosen: RunCommand | undefined;
  const program = createProgram(
    'npm run ledger --',
    'Reports the ledger, and manages accounts, payments and API keys.',
    print,
  );
  for (const [name, { description, operandNames = [], required = [], optional = [], run }] of Object.entries(
    COMMANDS,
  )) {
    const [groupName, subcommandName] = name.split(' ');
    const group = program.commands.find((command) => subcommandName !== undefined && command.name() === groupName);
    const command = (group ?? program).command(subcommandName ?? name).description(description);
    for (const operandName of operandNames) command.argument(`<${operandName}>`, OPERANDS[operandName]);
    for (const option of [...required, ...optional]) {
      const [flags, meaning] = OPTIONS[option];
      const rejectRepetition = (value: string | undefined, previous: string | undefined) =>
        previous === undefined ? value : command.error(`--${option} must be given once`);
      command.addOption(
        new Option(flags, meaning).argParser(rejectRepetition).makeOptionMandatory(required.includes(option)),
      );
    }
    command.action(() => {
      const input = { operands: command.args, options: command.opts(), print, startProgress };
      chosen = async (foundation) => (await run({ foundation, ...input })) !== false;
    });
  }
  await runProgram(program, args);
  return chosen;
}

/**
 * Runs a command of the ledger command line in an installation.
 * @param env the settings of the installation
 * @param startProgress shows the progress of `verify`; by default nothing shows it
 * @returns false if the command found a problem
 * @throws Error whose message is for the operator
 */
export async function runLedgerCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (line: string) => void,
  startProgress?: StartProgress,
): Promise<boolean> {
  const run = await parseLedgerCommand(args, print, startProgress);
  if (!run) return true;
  const foundation = await openFoundation(readSettings(env), createLog('warn'));
  try {
    return await run(foundation);
  } finally {
    await foundation.close();
  }
}
