import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseDataLookup } from '#application';
import { type DataEndpoint, importOpenRouterModels, parseModels, readCatalogue } from '#catalogue';
import { StartError } from '#foundation';

const USAGE = 'Usage: npm run catalogue -- check [directory] | import --from openrouter [--margin 1.055] <file>';

/** Runs the catalogue command line: validates the data files, or converts OpenRouter's list to catalogue entries. */
function main(): void {
  const options = { from: { type: 'string' }, margin: { type: 'string', default: '1.055' } } as const;
  const { positionals, values } = parseArgs({ allowPositionals: true, options });
  const [command, file] = positionals;
  if (command === 'check') {
    const { models, dataEndpoints, priceList } = readCatalogue(file);
    dataEndpoints.forEach(assertValidExample);
    const counts = `${models.length} models, ${dataEndpoints.length} lookups`;
    process.stdout.write(`${counts}, price list ${priceList.version}\n`);
  } else if (command === 'import' && values.from === 'openrouter' && file) {
    const { models, skipped } = importOpenRouterModels(JSON.parse(readFileSync(file, 'utf8')), values.margin);
    process.stdout.write(`${JSON.stringify(parseModels(models), null, 2)}\n`);
    process.stderr.write(`${models.length} models\n${skipped.map((entry) => `skipped: ${entry}\n`).join('')}`);
  } else throw new StartError(USAGE);
}

/** Checks that a lookup accepts its own example, because clients copy it. */
function assertValidExample(entry: DataEndpoint): void {
  const { method, example } = entry;
  try {
    parseDataLookup(method === 'GET' ? { query: example, body: undefined } : { query: {}, body: example }, entry);
  } catch (error) {
    throw new StartError(`example of data endpoint "${entry.endpoint.model}" is rejected: ${(error as Error).message}`);
  }
}

try {
  main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
