import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { FileStoreUnavailableError } from '#application';
import { syncDirectory } from '#connectors';
import { isBackupName } from './backup-names.ts';
import type { BackupStore } from './backup-store.ts';

/** Ending of the name of a file that is being written. A process that dies leaves such a file. */
const PARTIAL = '.partial';

/** Stores backups in a directory, such as that of a network file system. */
export class DirectoryStore implements BackupStore {
  private constructor(private readonly root: string) {}

  /** @throws FileStoreUnavailableError if the directory cannot be created */
  static async open(root: string): Promise<DirectoryStore> {
    await mkdir(root, { recursive: true, mode: 0o700 }).catch((error) => {
      throw new FileStoreUnavailableError(error);
    });
    return new DirectoryStore(root);
  }

  /** Reads only directories of backups: the root of a disk has others that only the superuser may read. */
  async list(): Promise<readonly string[]> {
    const entries = await readdir(this.root, { withFileTypes: true });
    const backups = entries.filter((entry) => entry.isDirectory() && isBackupName(entry.name));
    return (await Promise.all(backups.map(({ name }) => this.listFiles(name)))).flat();
  }

  async write(name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const file = path.join(this.root, name);
    const directory = path.dirname(file);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(`${file}${PARTIAL}`, content, { mode: 0o600, flush: true });
    await rename(`${file}${PARTIAL}`, file);
    for (const folder of [directory, this.root]) await syncDirectory(folder);
  }

  read(name: string): AsyncIterable<Uint8Array> {
    return createReadStream(path.join(this.root, name));
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(path.join(this.root, name), { force: true });
    const directories = new Set(names.map((name) => path.dirname(path.join(this.root, name))));
    for (const directory of directories) await rmdir(directory).catch(() => {}); // it may have other files
  }

  close(): void {}

  /** @returns an empty list if another process has deleted the directory in the meantime */
  private async listFiles(backup: string): Promise<readonly string[]> {
    try {
      const entries = await readdir(path.join(this.root, backup), { withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map(({ name }) => path.join(backup, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }
}
