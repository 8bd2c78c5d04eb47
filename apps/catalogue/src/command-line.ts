import { readFileSync, statSync } from 'node:fs';
import { type Command, Option } from 'commander';
import {
  compareModelList,
  formatDay,
  importOpenRouterModels,
  isDay,
  LISTING_PROVIDERS,
  parseModelList,
  parseModels,
  readCatalogue,
  readProviders,
  toDayNumber,
} from '#catalogue';
import { readSetting, readSettings, SETTINGS, StartError } from '#foundation';
import { createProgram, runProgram } from '#foundation/command-line';
import type { Environment } from '#foundation/program';
import { checkCatalogue } from './check.ts';

interface CheckOptions {
  readonly day: string;
  readonly live?: true;
}

interface ImportOptions {
  readonly from: string;
  readonly day: string;
  readonly catalogue?: string;
  readonly entries?: true;
  readonly margin: string;
}

/** Larger files are not read. OpenRouter's list, the longest, has about 2 MiB. */
const MAX_LIST_BYTES = 32 * 1024 * 1024;

export interface CommandOutput {
  readonly exitCode: 0 | 1;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the catalogue command line: checks the data files, or reads a saved list of a provider's models. The files are
 * of third parties, so control and format characters, which a terminal would execute, are escaped as in JSON. Entries of
 * the catalogue stay valid JSON with the same content.
 * @param args the arguments after `npm run catalogue --`
 */
export async function runCatalogueCommand(args: readonly string[], env: Environment): Promise<CommandOutput> {
  const { exitCode, stdout, stderr } = await runCommand(args, env).catch((error) =>
    createResult([], [error instanceof Error ? error.message : String(error)], 1),
  );
  return { exitCode, stdout: escapeControls(stdout), stderr: escapeControls(stderr) };
}

async function runCommand(args: readonly string[], env: Environment): Promise<CommandOutput> {
  let output = createResult([]);
  const program = createProgram(
    'npm run catalogue --',
    "Checks the files of the catalogue, and reads saved lists of a provider's models.",
    (help) => {
      output = createResult([help]);
    },
  );
  const currentDay = formatDay(toDayNumber(Date.now()));
  const day = new Option('--day <date>', 'The day in UTC, such as 2027-02-01.').default(currentDay).argParser(parseDay);
  program
    .command('check')
    .description('Checks the catalogue files of a directory, by default those that are shipped.')
    .argument('[directory]')
    .option('--live', 'Also compares the catalogue with the lists of models of the configured providers.')
    .addOption(day)
    .action(async (directory: string | undefined, options: CheckOptions) => {
      output = options.live ? await checkLive(directory, options.day, env) : check(directory, options.day);
    });
  program
    .command('import')
    .description("Compares a saved list of a provider's models with the catalogue, or prints new entries.")
    .argument('<file>')
    .requiredOption('--from <provider>', `The provider: ${LISTING_PROVIDERS.join(', ')}.`)
    .addOption(day)
    .option('--catalogue <directory>', 'The catalogue to compare with.')
    .option('--entries', 'Prints entries for the models of OpenRouter.')
    .option('--margin <factor>', 'The price of the entries as a multiple of the cost.', '1.055')
    .action((file: string, options: ImportOptions, command: Command) => {
      if (options.entries && options.from !== 'openrouter') command.error('--entries requires --from openrouter');
      output = options.entries ? listEntries(readList(file), options.margin) : compare(file, options);
    });
  await runProgram(program, args);
  return output;
}

function compare(file: string, { from, day, catalogue }: ImportOptions): CommandOutput {
  const differences = compareModelList(readCatalogue(catalogue), from, parseModelList(from, readList(file)), day);
  return createResult(differences.map(({ sentence }) => sentence));
}

function parseDay(day: string): string {
  if (isDay(day)) return day;
  throw new StartError('--day must be a date, such as 2027-02-01');
}

function check(directory: string | undefined, day: string): CommandOutput {
  const { summary, warnings, problems } = checkCatalogue(directory, day);
  return createReport([summary], warnings, problems);
}

/** @param directory undefined for that of CATALOGUE_DIR */
async function checkLive(directory: string | undefined, day: string, env: Environment): Promise<CommandOutput> {
  const source = directory ?? readSetting(SETTINGS.catalogueDir, env);
  const { summary, warnings, problems } = checkCatalogue(source, day);
  // Loaded only here, because the connectors of all providers take longer to load than the other commands run.
  const { checkLists } = await import('./live-check.ts');
  const providers = readProviders(source);
  const lists = await checkLists(
    readCatalogue(source),
    providers,
    readSettings(env, () => providers),
    day,
  );
  return createReport([summary, ...lists.results], [...warnings, ...lists.warnings], [...problems, ...lists.problems]);
}

function listEntries(list: unknown, margin: string): CommandOutput {
  const { models, skipped } = importOpenRouterModels(list, margin);
  const messages = [`${models.length} models`, ...skipped.map((entry) => `skipped: ${entry}`)];
  return createResult([JSON.stringify(parseModels(models), null, 2)], messages);
}

function createReport(
  results: readonly string[],
  warnings: readonly string[],
  problems: readonly string[],
): CommandOutput {
  const messages = [...warnings.map((warning) => `warning: ${warning}`), ...problems];
  return createResult(results, messages, problems.length > 0 ? 1 : 0);
}

function createResult(
  results: readonly string[],
  messages: readonly string[] = [],
  exitCode: CommandOutput['exitCode'] = 0,
): CommandOutput {
  const formatLines = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');
  return { exitCode, stdout: formatLines(results), stderr: formatLines(messages) };
}

function readList(file: string): unknown {
  const { size } = statSync(file);
  if (size > MAX_LIST_BYTES) throw new StartError(`${file} must have at most ${MAX_LIST_BYTES} bytes, not ${size}`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new StartError(`${file} is not JSON: ${(error as Error).message}`);
  }
}

function escapeControls(text: string): string {
  const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, (character) => character.split('').map(toEscape).join(''));
}
