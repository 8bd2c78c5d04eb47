import { StartError } from '#foundation';
import { fillNewDirectory } from '../create.ts';
import { findNewest, listBackups } from './backup-names.ts';
import type { BackupStore } from './backup-store.ts';
import type { Encrypt } from './encryption.ts';

/** Names of files come from the store, and become parts of paths. */
const STORED_FILE = /^[^/]+\/([a-z_]+(?:\.[a-z_]+)+)\.age$/;

/**
 * Reads a scheduled backup and decrypts it into a new directory, which `restore` can read.
 * @param name of the backup; by default the newest complete one
 * @returns its name
 * @throws StartError if there is no such backup, it cannot be decrypted, or the directory exists
 */
export async function fetchBackup(
  store: Pick<BackupStore, 'list' | 'read'>,
  decrypt: Encrypt,
  directory: string,
  name?: string,
): Promise<string> {
  const backups = listBackups(await store.list());
  const chosen =
    name === undefined
      ? findNewest(backups, Date.now())
      : backups.find((backup) => backup.name === name && backup.isComplete);
  if (!chosen) throw new StartError(`There is no complete backup${name === undefined ? '' : ` ${name}`}.`);
  await fillNewDirectory(directory, async (write) => {
    for (const path of chosen.paths) {
      const [, file] = STORED_FILE.exec(path) ?? [];
      if (file !== undefined) await write(file, decryptOrExplain(path, decrypt(store.read(path))));
    }
  });
  return chosen.name;
}

async function* decryptOrExplain(path: string, content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* content;
  } catch (error) {
    throw new StartError(`${path} cannot be decrypted with BACKUP_SECRET_KEY: ${(error as Error).message}.`);
  }
}
