/** The catalogue as data files in one directory, which an operator can edit while the service runs. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { Catalogue } from './catalogue.ts';
import { feesIn, modelsIn, parameterListsIn } from './model-file.ts';

/** Lists of request fields that endpoints refer to by name, and fees; every other file is a list of models. */
const PARAMETER_LISTS = 'parameters.json';
const FEES = 'fees.json';

/**
 * Reads the catalogue that ships with the project, or one of the same form.
 * @throws Error that names the file, the model and the field, when one of them is not as it must be
 */
export function readCatalogue(directory = shippedCatalogue()): Catalogue {
  const files = catalogueFiles(directory);
  const lists = read(path.join(directory, PARAMETER_LISTS), parameterListsIn);
  const fees = read(path.join(directory, FEES), feesIn);
  const models = files
    .filter((file) => ![PARAMETER_LISTS, FEES].includes(path.basename(file)))
    .flatMap((file) => read(file, modelsIn));
  return naming(directory, () => new Catalogue(models, lists, fees));
}

/** Changes whenever a file was changed, added or removed. */
export function catalogueStamp(directory: string): string {
  return catalogueFiles(directory)
    .map((file) => {
      const { mtimeMs, size } = statSync(file);
      return `${file} ${mtimeMs} ${size}`;
    })
    .join('\n');
}

export function shippedCatalogue(): string {
  let dir = import.meta.dirname;
  while (!existsSync(path.join(dir, 'package.json'))) dir = path.dirname(dir);
  return path.join(dir, 'libs/catalogue/data');
}

function catalogueFiles(directory: string): readonly string[] {
  return naming(directory, () =>
    readdirSync(directory)
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => path.join(directory, name)),
  );
}

function read<T>(file: string, check: (data: unknown) => T): T {
  return naming(file, () => check(JSON.parse(readFileSync(file, 'utf8'))));
}

function naming<T>(what: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new Error(`${what} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}
