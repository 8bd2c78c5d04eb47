/** A backup is a directory: a manifest, and for each table its rows as PostgreSQL copies them, packed. */
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
  /** Of the file, in hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly format: typeof MANIFEST_FORMAT;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly factsIn: 'PostgreSQL' | 'EventStoreDB';
  /** Fingerprints of the master keys without which it is worth little. */
  readonly masterKeys: readonly string[];
  /** The state of the tables that the rows are of. */
  readonly migrations: readonly string[];
  readonly tables: readonly SavedTable[];
}

export function createManifest(content: Omit<Manifest, 'format'>): Manifest {
  return { format: MANIFEST_FORMAT, ...content };
}

/** @throws StartError */
export async function readManifest(directory: string): Promise<Manifest> {
  const file = path.join(directory, MANIFEST_FILE);
  const text = await readFile(file, 'utf8').catch(() => {
    throw new StartError(`${directory} has no ${MANIFEST_FILE}: it is no backup, or one that was not finished.`);
  });
  const manifest = parseManifest(text);
  if (manifest?.format === MANIFEST_FORMAT && manifest.tables.every(isValidTable)) return manifest;
  throw new StartError(`${file} cannot be read: it was changed, or written by another version.`);
}

function parseManifest(text: string): Manifest | undefined {
  try {
    return JSON.parse(text) as Manifest;
  } catch {
    return undefined;
  }
}

/** Names go into statements and paths. */
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
