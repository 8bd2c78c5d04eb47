/** Reads the catalogue from a directory of data files, which an operator can edit while the service runs. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { PaymentTerms } from '#domain';
import { Catalogue } from './catalogue.ts';
import { assertDataProvidersExist, type DataEndpointFile, parseDataEndpoints } from './data-endpoint-file.ts';
import { parseFees, parseModels, parseParameterLists } from './data-files.ts';
import { findLines, findSyntaxErrorLine } from './json-lines.ts';
import { parseRuleSets, type RuleSets } from './model-rules.ts';
import { parsePaymentTerms } from './payments-file.ts';
import { type ProviderFile, parseProviders } from './provider-file.ts';
import { DataFileError, joinMistakes, type Mistake } from './validation.ts';
import { parseVoices } from './voices-file.ts';

/**
 * Files that are not lists of models. `parameters.json` has lists of request fields and `model-rules.json` sets of rules,
 * which endpoints refer to by name.
 */
const PARAMETER_LISTS = 'parameters.json';
const RULES = 'model-rules.json';
const FEES = 'fees.json';
const PROVIDERS = 'providers.json';
const PAYMENTS = 'payments.json';
const VOICES = 'voices.json';
const DATA_ENDPOINTS = 'data-endpoints.json';
const NON_MODEL_FILES: readonly string[] = [PARAMETER_LISTS, RULES, FEES, PROVIDERS, PAYMENTS, VOICES, DATA_ENDPOINTS];

/**
 * Reads and validates a catalogue, by default the one that ships with the project.
 * @throws Error with a line for each mistake of the first invalid file: the file and, if the mistake is in an entry, the
 *   line, the entry and the field. References between files are checked when each file is valid by itself.
 */
export function readCatalogue(directory = getShippedCatalogueDir()): Catalogue {
  const files = listCatalogueFiles(directory);
  const providers = readProviders(directory);
  const lists = readDataFile(path.join(directory, PARAMETER_LISTS), parseParameterLists);
  const modelRules = readRuleSets(directory);
  const fees = readDataFile(path.join(directory, FEES), parseFees);
  const voices = readDataFile(resolveDataFile(directory, VOICES), parseVoices);
  const models = files
    .filter((file) => !NON_MODEL_FILES.includes(path.basename(file)))
    .map((file) => readDataFile(file, parseModels));
  const dataEndpoints = readDataEndpoints(directory, providers);
  try {
    return Catalogue.fromFiles(
      models.flatMap(({ content }) => content),
      {
        lists: lists.content,
        modelRules,
        fees: fees.content,
        providers,
        voices: voices.content,
        dataEndpoints,
      },
    );
  } catch (error) {
    if (error instanceof DataFileError) throw locateMistakes(models, error);
    throw createUnusableFileError(directory, error);
  }
}

/** Does not fall back to the shipped file: a directory without data endpoints sells none. */
function readDataEndpoints(directory: string, providers: readonly ProviderFile[]): readonly DataEndpointFile[] {
  const file = path.join(directory, DATA_ENDPOINTS);
  return existsSync(file)
    ? readDataFile(file, (data) => assertDataProvidersExist(parseDataEndpoints(data), providers)).content
    : [];
}

/**
 * Reads the providers of a catalogue. A directory without `providers.json` uses the one that ships with the project.
 * @throws Error as `readCatalogue` does
 */
export function readProviders(directory = getShippedCatalogueDir()): readonly ProviderFile[] {
  return readDataFile(resolveDataFile(directory, PROVIDERS), parseProviders).content;
}

/**
 * Reads the rule sets of models. A directory without `model-rules.json` uses the one that ships with the project.
 * @throws Error as `readCatalogue` does
 */
export function readRuleSets(directory = getShippedCatalogueDir()): RuleSets {
  return readDataFile(resolveDataFile(directory, RULES), parseRuleSets).content;
}

/**
 * Reads the coins and payment methods of a catalogue. A directory without `payments.json` uses the one that ships with
 * the project.
 * @throws Error as `readCatalogue` does
 */
export function readPayments(directory = getShippedCatalogueDir()): PaymentTerms {
  return readDataFile(resolveDataFile(directory, PAYMENTS), parsePaymentTerms).content;
}

function resolveDataFile(directory: string, file: string): string {
  const ownFile = path.join(directory, file);
  return existsSync(ownFile) ? ownFile : path.join(getShippedCatalogueDir(), file);
}

/** Returns a text that differs if a file was added or removed, or has another modification time or size. */
export function readCatalogueStamp(directory: string): string {
  return listCatalogueFiles(directory)
    .map((file) => {
      const { mtimeMs, size } = statSync(file);
      return `${file} ${mtimeMs} ${size}`;
    })
    .join('\n');
}

export function getShippedCatalogueDir(): string {
  let dir = import.meta.dirname;
  while (!existsSync(path.join(dir, 'package.json'))) dir = path.dirname(dir);
  return path.join(dir, 'libs/catalogue/data');
}

function listCatalogueFiles(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => path.join(directory, name));
  } catch (error) {
    throw createUnusableFileError(directory, error);
  }
}

interface DataFile<T> {
  readonly file: string;
  readonly text: string;
  readonly content: T;
}

function readDataFile<T>(file: string, parse: (data: unknown) => T): DataFile<T> {
  let text: string | undefined;
  try {
    text = readFileSync(file, 'utf8');
    return { file, text, content: parse(JSON.parse(text)) };
  } catch (error) {
    if (text === undefined) throw createUnusableFileError(file, error);
    if (error instanceof DataFileError)
      throw new Error(joinMistakes(formatMistakes({ file, text }, error.mistakes)), { cause: error });
    const reason = (error as Error).message.replace(/\s+/g, ' ');
    throw createUnusableFileError(
      `${file}:${findSyntaxErrorLine(text)}`,
      new Error(`invalid JSON: ${reason}`, { cause: error }),
    );
  }
}

/**
 * Locates mistakes that were found across files. Their paths start with the index of a model among the models of all
 * files.
 */
function locateMistakes(files: readonly DataFile<readonly unknown[]>[], error: DataFileError): Error {
  let start = 0;
  const lines = files.flatMap((file) => {
    const end = start + file.content.length;
    const ownMistakes = error.mistakes.flatMap(({ message, path: [i, ...field] }) =>
      typeof i === 'number' && i >= start && i < end ? [{ message, path: [i - start, ...field] }] : [],
    );
    start = end;
    return formatMistakes(file, ownMistakes);
  });
  return new Error(joinMistakes(lines), { cause: error });
}

/** Returns a text for each mistake of a file, in the order of their lines. */
function formatMistakes(
  { file, text }: Omit<DataFile<unknown>, 'content'>,
  mistakes: readonly Mistake[],
): readonly string[] {
  const lines = findLines(
    text,
    mistakes.map(({ path }) => path),
  );
  return mistakes
    .map(({ message }, i) => ({ message, line: lines[i] ?? 1 }))
    .toSorted((one, other) => one.line - other.line)
    .map(({ message, line }) => formatUnusable(`${file}:${line}`, message));
}

function createUnusableFileError(location: string, cause: unknown): Error {
  return new Error(formatUnusable(location, (cause as Error).message), { cause });
}

/** @param location a path, or a path and a line in the format that editors and terminals link: `data/models.json:12` */
function formatUnusable(location: string, problem: string): string {
  return `${location} cannot be used: ${problem}`;
}
