import '#foundation/node-version';
import { readFileSync, statSync } from 'node:fs';
import { parseArgs } from 'node:util';
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
import { readSettings, SETTINGS, StartError } from '#foundation';
import { checkCatalogue } from './check.ts';

const USAGE = `Usage: npm run catalogue -- check [--live] [--day 2027-02-01] [directory]
  | import --from ${LISTING_PROVIDERS.join('|')} [--day 2027-02-01] [--catalogue <directory>] <file>
  | import --from openrouter --entries [--margin 1.055] <file>`;

const OPTIONS = {
  catalogue: { type: 'string' },
  day: { type: 'string', default: formatDay(toDayNumber(Date.now())) },
  entries: { type: 'boolean' },
  from: { type: 'string' },
  live: { type: 'boolean' },
  margin: { type: 'string', default: '1.055' },
} as const;

/** Larger files are not read. OpenRouter's list, the longest, has about 2 MiB. */
const MAX_LIST_BYTES = 32 * 1024 * 1024;

/** Runs the catalogue command line: checks the data files, or reads a saved list of a provider's models. */
async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: OPTIONS });
  const [command, file] = positionals;
  const { catalogue: directory, day, entries, from, live, margin } = values;
  if (!isDay(day)) throw new StartError('--day must be a date, such as 2027-02-01');
  if (command === 'check' && live) await checkLive(file, day);
  else if (command === 'check') check(file, day);
  else if (live) throw new StartError(USAGE);
  else if (command === 'import' && entries && from === 'openrouter' && file) printEntries(readList(file), margin);
  else if (command === 'import' && !entries && from && file) {
    const differences = compareModelList(readCatalogue(directory), from, parseModelList(from, readList(file)), day);
    print(process.stdout, differences.map(({ sentence }) => `${sentence}\n`).join(''));
  } else throw new StartError(USAGE);
}

function check(directory: string | undefined, day: string): void {
  const { summary, warnings, problems } = checkCatalogue(directory, day);
  printReport([summary], warnings, problems);
}

/** @param directory undefined for that of CATALOGUE_DIR */
async function checkLive(directory: string | undefined, day: string): Promise<void> {
  const { env } = process;
  const source = directory ?? SETTINGS.catalogueDir.read(env);
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
  printReport([summary, ...lists.results], [...warnings, ...lists.warnings], [...problems, ...lists.problems]);
}

/** @throws StartError with the problems, if there are any */
function printReport(results: readonly string[], warnings: readonly string[], problems: readonly string[]): void {
  print(process.stdout, results.map((result) => `${result}\n`).join(''));
  print(process.stderr, warnings.map((warning) => `warning: ${warning}\n`).join(''));
  if (problems.length > 0) throw new StartError(problems.join('\n'));
}

function printEntries(list: unknown, margin: string): void {
  const { models, skipped } = importOpenRouterModels(list, margin);
  print(process.stdout, `${JSON.stringify(parseModels(models), null, 2)}\n`);
  print(process.stderr, `${models.length} models\n${skipped.map((entry) => `skipped: ${entry}\n`).join('')}`);
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

/**
 * Prints lines of text. The files are of third parties, so control and format characters, which a terminal would execute,
 * are escaped as in JSON. Entries of the catalogue stay valid JSON with the same content.
 */
function print(stream: NodeJS.WriteStream, text: string): void {
  const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  stream.write(text.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, (character) => character.split('').map(toEscape).join('')));
}

try {
  await main();
} catch (error) {
  print(process.stderr, `${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
