import { parseArgs } from 'node:util';
import { verify } from '#audit';
import { readPayments } from '#catalogue';
import { createLog, type Foundation, openFoundation, readSettings, StartError } from '#foundation';
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

/** All options of the commands. */
const OPTIONS = {
  since: '--since <ISO 8601 time>',
  until: '--until <ISO 8601 time or position>',
  cost: '--cost <USD or none>',
  why: '--why <text>',
  all: '--all',
  name: '--name <name>',
  account: '--account <account>',
  usd: '--usd <amount>',
  reason: '--reason <text>',
  id: '--id <id>',
  actor: '--actor <name>',
  limit: '--limit <USD>',
  reset: '--reset <daily, weekly or monthly>',
  expires: '--expires <ISO 8601 date or time>',
  models: '--models <ids and patterns>',
  tags: '--tags <name=value,…>',
} as const;
type OptionName = keyof typeof OPTIONS;
const FLAGS: ReadonlySet<string> = new Set<OptionName>(['all']);

interface CommandInput {
  readonly foundation: Foundation;
  /** The positional arguments after the command name, as many as the command requires. */
  readonly operands: readonly string[];
  /** Those that the command requires are present. A flag has an empty text. */
  readonly options: { readonly [name in OptionName]?: string };
  print(line: string): void;
}

interface Command {
  /** Names of the positional arguments in the usage text. */
  readonly operandNames?: readonly string[];
  readonly required?: readonly OptionName[];
  readonly optional?: readonly OptionName[];
  /** Resolves to false if the command found a problem. */
  run(input: CommandInput): Promise<unknown>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  verify: { run: ({ foundation, print }) => verify(foundation, print) },
  replay: {
    optional: ['until'],
    run: ({ foundation, options: { until }, print }) => replay(foundation.store, until, print),
  },
  wallets: {
    optional: ['until'],
    run: ({ foundation: { store, settings }, options: { until }, print }) =>
      printWallets({ store, ...readPayments(settings.catalogueDir) }, until, print),
  },
  accruals: {
    optional: ['since', 'until'],
    run: ({ foundation, options: { since, until }, print }) => printAccruals(foundation.store, { since, until }, print),
  },
  costs: {
    optional: ['since', 'until'],
    run: ({ foundation, options: { since, until }, print }) => printCosts(foundation.store, { since, until }, print),
  },
  accounts: {
    optional: ['all'],
    run: ({ foundation, options: { all }, print }) => printAccounts(foundation, all !== undefined, print),
  },
  'accounts create': {
    required: ['name'],
    optional: ['actor'],
    run: ({ foundation, options: { name = '', actor }, print }) => createAccount(foundation, name, actor, print),
  },
  credit: {
    operandNames: ['account'],
    required: ['usd', 'reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = ''], options: { usd = '', reason = '', id, actor }, print }) =>
      creditAccount(foundation, account, { usd, reason, id, actor }, print),
  },
  debit: {
    operandNames: ['account'],
    required: ['usd', 'reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = ''], options: { usd = '', reason = '', id, actor }, print }) =>
      debitAccount(foundation, account, { usd, reason, id, actor }, print),
  },
  reverse: {
    operandNames: ['account', 'credit or debit'],
    required: ['reason'],
    optional: ['id', 'actor'],
    run: ({ foundation, operands: [account = '', reverses = ''], options: { reason = '', id, actor }, print }) =>
      reverseAdjustment(foundation, account, { reverses, reason, id, actor }, print),
  },
  history: {
    operandNames: ['account'],
    run: ({ foundation, operands: [account = ''], print }) => printHistory(foundation, account, print),
  },
  keys: {
    optional: ['account'],
    run: ({ foundation, options: { account }, print }) => printApiKeys(foundation, account, print),
  },
  'keys create': {
    required: ['account', 'name'],
    optional: ['limit', 'reset', 'expires', 'models', 'tags', 'actor'],
    run: ({ foundation, options: { account = '', name = '', ...options }, print }) =>
      createApiKey(foundation, { account, name, ...options }, print),
  },
  'keys block': {
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      setKeyBlock(foundation, { key, isBlocked: true, actor }, print),
  },
  'keys unblock': {
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      setKeyBlock(foundation, { key, isBlocked: false, actor }, print),
  },
  'keys revoke': {
    operandNames: ['key'],
    optional: ['actor'],
    run: ({ foundation, operands: [key = ''], options: { actor }, print }) =>
      revokeApiKey(foundation, { key, actor }, print),
  },
  autotopup: {
    operandNames: ['account'],
    run: async ({ foundation, operands: [account = ''], print }) =>
      printAutoTopups(foundation.store, (await findAccount(foundation, account)).id, print),
  },
  account: {
    operandNames: ['account'],
    run: ({ foundation, operands: [account = ''], print }) => printAccount(foundation, account, print),
  },
  jobs: { run: ({ foundation, print }) => printJobs(foundation, print) },
  'jobs close': {
    operandNames: ['job'],
    required: ['cost'],
    run: ({ foundation, operands: [job = ''], options: { cost = '' }, print }) =>
      closeJobCost(foundation, job, cost, print),
  },
  payments: { run: ({ foundation, print }) => printPayments(foundation, print) },
  'payments credit': {
    operandNames: ['top-up', 'payment'],
    run: ({ foundation, operands: [topupId = '', payment = ''], print }) =>
      creditExcess(foundation, topupId, payment, print),
  },
  'payments refund': {
    operandNames: ['top-up', 'payment'],
    required: ['why'],
    run: ({ foundation, operands: [topupId = '', paymentKey = ''], options: { why = '' }, print }) =>
      recordExcessRefund(foundation, { topupId, paymentKey, why }, print),
  },
  'payments close': {
    operandNames: ['payment'],
    required: ['why'],
    run: ({ foundation, operands: [paymentKey = ''], options: { why = '' }, print }) =>
      closeContests(foundation, { paymentKey, why }, print),
  },
  challenges: { run: ({ foundation, print }) => printChallenges(foundation, print) },
  'master-keys': { run: ({ foundation, print }) => printMasterKeys(foundation, print) },
  'master-keys forget': {
    operandNames: ['fingerprint'],
    run: ({ foundation, operands: [fingerprint = ''], print }) =>
      retireKeyByFingerprint(foundation, fingerprint, print),
  },
  skip: {
    operandNames: ['read model', 'position'],
    required: ['why'],
    run: ({ foundation, operands: [readModel = '', position = ''], options: { why = '' }, print }) =>
      skipBlockingEvent(foundation, { readModel, position, reason: why }, print),
  },
};

/** @param names the commands to name */
function formatUsage(names: readonly string[]): string {
  return `Usage: npm run ledger -- ${names.map(formatCommand).join(' | ')}`;
}

function formatCommand(name: string): string {
  const { operandNames = [], required = [], optional = [] } = COMMANDS[name] as Command;
  const operands = operandNames.map((operandName) => `<${operandName}>`);
  const options = [...required.map((option) => OPTIONS[option]), ...optional.map((option) => `[${OPTIONS[option]}]`)];
  return [name, ...operands, ...options].join(' ');
}

/**
 * Returns the command and its positional arguments. An unknown second word is an argument of the first one.
 * @throws StartError with the usage text: of the command if it has other arguments or options, else of all commands
 */
function parseCommand(positionals: readonly string[], optionNames: ReadonlySet<string>) {
  const length = Object.hasOwn(COMMANDS, positionals.slice(0, 2).join(' ')) && positionals.length > 1 ? 2 : 1;
  const name = positionals.slice(0, length).join(' ');
  const operands = positionals.slice(length);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const { operandNames = [], required = [], optional = [] } = command ?? {};
  const allowed: ReadonlySet<string> = new Set([...required, ...optional]);
  const hasValidOptions = required.every((option) => optionNames.has(option)) && optionNames.isSubsetOf(allowed);
  const related = Object.keys(COMMANDS).filter(
    (commandName) => commandName === positionals[0] || commandName.startsWith(`${positionals[0]} `),
  );
  if (!command) throw new StartError(formatUsage(related.length > 0 ? related : Object.keys(COMMANDS)));
  if (operands.length !== operandNames.length || !hasValidOptions)
    throw new StartError(formatUsage(length === 1 ? related : [name]));
  return { command, operands };
}

/**
 * Parses the arguments of the ledger command line, such as `verify` or `replay`.
 * @param args the arguments after `npm run ledger --`
 * @returns a function that runs the command, and resolves to false if the command found a problem
 * @throws Error whose message is for the operator, such as a StartError or an error of `parseArgs`
 */
export function parseLedgerCommand(
  args: string[],
): (foundation: Foundation, print: (line: string) => void) => Promise<boolean> {
  const types = Object.keys(OPTIONS).map((name) => [name, { type: FLAGS.has(name) ? 'boolean' : 'string' }] as const);
  const parsed = parseArgs({ args, allowPositionals: true, tokens: true, options: Object.fromEntries(types) });
  const { positionals, values } = parsed;
  const names = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
  const repeated = names.find((name, i) => names.indexOf(name) < i);
  if (repeated !== undefined) throw new StartError(`--${repeated} must be given once.`);
  const { command, operands } = parseCommand(positionals, new Set(Object.keys(values)));
  const options = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value === true ? '' : value]),
  );
  return async (foundation, print) => (await command.run({ foundation, operands, options, print })) !== false;
}

/**
 * Runs a command of the ledger command line in an installation.
 * @param env the settings of the installation
 * @returns false if the command found a problem
 * @throws Error whose message is for the operator
 */
export async function runLedgerCommand(
  args: string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (line: string) => void,
): Promise<boolean> {
  const run = parseLedgerCommand(args);
  const foundation = await openFoundation(readSettings(env), createLog('warn'));
  try {
    return await run(foundation, print);
  } finally {
    await foundation.close();
  }
}
