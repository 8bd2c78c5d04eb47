import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { StartError } from './start-error.ts';

/**
 * Creates the data directory if it does not exist, with access for its owner only. The mode of an existing one does not
 * change.
 * @returns its absolute path
 * @throws StartError if the directory cannot be created
 */
export async function ensureDataDirectory(dataDir: string): Promise<string> {
  const directory = path.resolve(dataDir);
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error) => {
    throw new StartError(`The data directory ${directory} cannot be used: ${error.message}.`);
  });
  return directory;
}
