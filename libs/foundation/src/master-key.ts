import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ensureDataDirectory } from './data-directory.ts';
import { createSecretFile } from './secret-file.ts';
import type { Settings } from './settings.ts';
import { StartError } from './start-error.ts';

/**
 * Returns the keys that protect all sealed and hashed secrets; the first one is for new secrets. The keys come from the
 * setting, or from a file in the data directory. Returns none if neither exists.
 * @throws StartError if the file is invalid, or the data directory cannot be created; any other error of reading
 */
export async function findMasterKeys(settings: Pick<Settings, 'masterKeys' | 'dataDir'>): Promise<readonly Buffer[]> {
  const { masterKeys, dataDir } = settings;
  if (masterKeys) return masterKeys.map((key) => Buffer.from(key, 'hex'));
  const file = await resolveKeyFile(dataDir);
  const text = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return [];
  if (!/^[0-9a-f]{64}$/.test(text.trim()))
    throw new StartError(`${file} does not contain a master key of 64 hexadecimal digits.`);
  return [Buffer.from(text.trim(), 'hex')];
}

/**
 * Returns the keys as `findMasterKeys` does. If there are none, it creates one in the data directory; concurrent calls
 * create only one.
 * @param assertFirst throws if the installation already uses a key, which must not be replaced
 */
export async function readOrCreateMasterKeys(
  settings: Pick<Settings, 'masterKeys' | 'dataDir'>,
  assertFirst: () => Promise<void>,
): Promise<readonly Buffer[]> {
  const existingKeys = await findMasterKeys(settings);
  if (existingKeys.length > 0) return existingKeys;
  try {
    await assertFirst();
  } catch (error) {
    const createdKeys = await findMasterKeys(settings); // by another process that starts at the same time
    if (createdKeys.length > 0) return createdKeys;
    throw error;
  }
  const generatedKey = randomBytes(32).toString('hex');
  await createSecretFile(await resolveKeyFile(settings.dataDir), generatedKey);
  return findMasterKeys(settings);
}

async function resolveKeyFile(dataDir: string): Promise<string> {
  return path.join(await ensureDataDirectory(dataDir), 'master.key');
}
