import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { StartError } from './start-error.ts';

/**
 * The data directory, made when it is not there yet; only its owner may enter it.
 * @throws StartError
 */
export async function ensureDataDirectory(dataDir: string): Promise<string> {
  const directory = path.resolve(dataDir);
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error) => {
    throw new StartError(`The data directory ${directory} cannot be used: ${error.message}.`);
  });
  return directory;
}
