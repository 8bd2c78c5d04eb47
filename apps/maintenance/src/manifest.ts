/** A backup is a directory with a manifest and, for each table, a gzip file of its rows in the text format of COPY. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { StartError } from '#foundation';

export const MANIFEST_FILE = 'manifest.json';
const MANIFEST_FORMAT = 1;

export interface SavedTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly file: string;
  readonly rows: number;
  /** Hash of the compressed file, in hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly format: typeof MANIFEST_FORMAT;
  /** ISO 8601. */
  readonly createdAt: string;
  /** Where the events are. A backup contains them only if they are in PostgreSQL. */
  readonly factsIn: 'PostgreSQL' | 'EventStoreDB';
  /** Fingerprints of the master keys of the installation, except those that were retired. */
  readonly masterKeys: readonly string[];
  /** Ids of the migrations that define the format of the rows. */
  readonly migrations: readonly string[];
  readonly tables: readonly SavedTable[];
}

export function createManifest(content: Omit<Manifest, 'format'>): Manifest {
  return { format: MANIFEST_FORMAT, ...content };
}

/** @throws StartError if the manifest is missing, is not JSON, or has another format or an invalid table */
export async function readManifest(directory: string): Promise<Manifest> {
  const file = path.join(directory, MANIFEST_FILE);
  const text = await readFile(file, 'utf8').catch(() => {
    throw new StartError(`${directory} has no ${MANIFEST_FILE}: it is not a backup, or an incomplete one.`);
  });
  const manifest = parseManifest(text);
  if (manifest?.format === MANIFEST_FORMAT && manifest.tables.every(isValidTable)) return manifest;
  throw new StartError(`${file} cannot be used: it was modified, or written by another version.`);
}

function parseManifest(text: string): Manifest | undefined {
  try {
    return JSON.parse(text) as Manifest;
  } catch {
    return undefined; // invalid JSON
  }
}

/** Checks the names strictly, because they become parts of SQL statements and paths. */
function isValidTable({ name, columns, file, rows, sha256 }: SavedTable): boolean {
  const identifiers = [...name.split('.'), ...columns];
  return (
    identifiers.every((identifier) => /^[a-z_]+$/.test(identifier)) &&
    file === toTableFileName(name) &&
    rows >= 0 &&
    sha256.length === 64
  );
}

export function toTableFileName(table: string): string {
  return `${table}.copy.gz`;
}
