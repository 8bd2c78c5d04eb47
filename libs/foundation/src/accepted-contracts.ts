/** Refuses to start a program that the database does not accept, because it belongs to another release. */
import type pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import { RELEASE } from './release.ts';
import { StartError } from './start-error.ts';

/** The contracts that the database accepts, and the first release that follows each. */
export interface AcceptedContracts {
  readonly oldest: number;
  readonly newest: number;
  readonly oldestVersion: string;
  readonly newestVersion: string;
}

/** @returns undefined if no version from 1.0.0 on has migrated the database yet */
export async function loadAcceptedContracts(
  database: Pick<pg.Client, 'query'>,
): Promise<AcceptedContracts | undefined> {
  const table = await database.query<{ existing: boolean }>(
    `select to_regclass('es.contracts') is not null as existing`,
  );
  if (!table.rows[0]?.existing) return undefined;
  const { rows } = await database.query<AcceptedContracts>(
    'select oldest, newest, oldest_version as "oldestVersion", newest_version as "newestVersion" from es.contracts',
  );
  return rows[0];
}

/** @throws StartError if the database does not accept `contract` */
export async function assertContractAccepted(
  database: Pick<pg.Client, 'query'>,
  contract = WRITE_CONTRACT,
): Promise<void> {
  const accepted = await loadAcceptedContracts(database);
  if (!accepted || isContractAccepted(accepted, contract)) return;
  const { oldest, newest, oldestVersion, newestVersion } = accepted;
  const range =
    oldest === newest
      ? `${oldest}, which versions from ${oldestVersion} on follow`
      : `${oldest} to ${newest}, which versions from ${oldestVersion} to ${newestVersion} and later follow`;
  throw new StartError(
    `This is version ${RELEASE.version}, which follows contract ${contract}, but the database accepts only contract ${range}: start such a version.`,
  );
}

/** Whether a program that follows `contract` may append. */
export function isContractAccepted({ oldest, newest }: AcceptedContracts, contract = WRITE_CONTRACT): boolean {
  return oldest <= contract && contract <= newest;
}
