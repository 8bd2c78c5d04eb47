/** What each provider accepts and sends: the schemas that `npm run contracts` makes from the SDKs of the providers. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type ContractSchema, type Definitions, type Deviation, findDeviations } from './find-deviations.ts';

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

/** @returns undefined if there is no contract for this message */
export function checkMessage(provider: string, name: string, value: unknown): readonly ContractDeviation[] | undefined {
  contracts ??= readContracts();
  const contract = contracts.get(provider);
  const schema = contract?.messages[name];
  if (!contract || !schema) return undefined;
  const message = `${provider} ${name}`;
  return findDeviations(value, schema, contract.$defs).map((deviation) => ({ message, ...deviation }));
}

function readContracts(): ReadonlyMap<string, ContractFile> {
  const files = readdirSync(SCHEMAS_DIR);
  return new Map(
    files.map((file) => [path.parse(file).name, JSON.parse(readFileSync(path.join(SCHEMAS_DIR, file), 'utf8'))]),
  );
}
