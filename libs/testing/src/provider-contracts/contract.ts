/** What each provider accepts and sends: the schemas that `npm run contracts` makes from the SDKs of the providers. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type ContractSchema, type Definitions, type Deviation, findDeviations } from './find-deviations.ts';
import { readTextFields, type TextField } from './text-fields.ts';

export type { TextField };

const SCHEMAS_DIR = path.resolve(import.meta.dirname, 'schemas');

interface ContractFile {
  /** Schemas of requests, responses, events and errors by name, such as `chatRequest`. */
  readonly messages: Readonly<Record<string, ContractSchema>>;
  readonly $defs: Definitions;
}

/** A deviation in a message of a provider. */
export interface ContractDeviation extends Deviation {
  /** Provider and message, such as `groq chatRequest`. */
  readonly message: string;
}

let contracts: ReadonlyMap<string, ContractFile> | undefined;

const NO_FIELDS: ContractSchema = { type: 'object', additionalProperties: false };

/** Whether there is a contract for any message of an operation, such as `chat`. */
export function hasContract(provider: string, operation: string): boolean {
  contracts ??= readContracts();
  const { messages = {} } = contracts.get(provider) ?? {};
  return ['Query', 'Request', 'Response', 'Event'].some((kind) => Object.hasOwn(messages, `${operation}${kind}`));
}

/** @returns undefined if there is no contract for this message */
export function checkMessage(provider: string, name: string, value: unknown): readonly ContractDeviation[] | undefined {
  contracts ??= readContracts();
  const { messages, $defs } = contracts.get(provider) ?? {};
  const schema = messages?.[name];
  if (!schema || !$defs) return undefined;
  return findDeviations(value, schema, $defs).map((deviation) => ({ message: `${provider} ${name}`, ...deviation }));
}

/** Checks query parameters or the fields of a form. A message without a contract must have none. */
export function checkTextFields(
  provider: string,
  name: string,
  fields: readonly TextField[],
): readonly ContractDeviation[] {
  contracts ??= readContracts();
  const { messages = {}, $defs = {} } = contracts.get(provider) ?? {};
  const schema = messages[name] ?? NO_FIELDS;
  const value = readTextFields(fields, schema, $defs);
  return findDeviations(value, schema, $defs).map((deviation) => ({ message: `${provider} ${name}`, ...deviation }));
}

function readContracts(): ReadonlyMap<string, ContractFile> {
  const files = readdirSync(SCHEMAS_DIR);
  return new Map(
    files.map((file) => [path.parse(file).name, JSON.parse(readFileSync(path.join(SCHEMAS_DIR, file), 'utf8'))]),
  );
}
