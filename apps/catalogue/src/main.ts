import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { formatDay, importOpenRouterModels, isDay, parseModels, toDayNumber } from '#catalogue';
import { StartError } from '#foundation';
import { checkCatalogue } from './check.ts';

const USAGE =
  'Usage: npm run catalogue -- check [--day 2027-02-01] [directory] | import --from openrouter [--margin 1.055] <file>';

/** Runs the catalogue command line: validates the data files, or converts OpenRouter's list to catalogue entries. */
function main(): void {
  const options = {
    day: { type: 'string', default: formatDay(toDayNumber(Date.now())) },
    from: { type: 'string' },
    margin: { type: 'string', default: '1.055' },
  } as const;
  const { positionals, values } = parseArgs({ allowPositionals: true, options });
  const [command, file] = positionals;
  if (command === 'check') {
    if (!isDay(values.day)) throw new StartError('--day must be a date, such as 2027-02-01');
    const { summary, warnings, problems } = checkCatalogue(file, values.day);
    process.stdout.write(`${summary}\n`);
    process.stderr.write(warnings.map((warning) => `warning: ${warning}\n`).join(''));
    if (problems.length > 0) throw new StartError(problems.join('\n'));
  } else if (command === 'import' && values.from === 'openrouter' && file) {
    const { models, skipped } = importOpenRouterModels(JSON.parse(readFileSync(file, 'utf8')), values.margin);
    process.stdout.write(`${JSON.stringify(parseModels(models), null, 2)}\n`);
    process.stderr.write(`${models.length} models\n${skipped.map((entry) => `skipped: ${entry}\n`).join('')}`);
  } else throw new StartError(USAGE);
}

try {
  main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
