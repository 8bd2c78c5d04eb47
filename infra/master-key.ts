import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { dataDirectory } from './data-directory.ts';
import type { Settings } from './settings.ts';
import { StartError } from './start-error.ts';

/**
 * The keys behind all sealed and hashed secrets, that of what is new first: the setting, or one that is made once in the data
 * directory.
 */
export async function readMasterKeys(settings: Pick<Settings, 'masterKeys' | 'dataDir'>): Promise<readonly Buffer[]> {
  const { masterKeys, dataDir } = settings;
  if (masterKeys) return masterKeys.map((key) => Buffer.from(key, 'hex'));
  const file = path.join(await dataDirectory(dataDir), 'master.key');
  await writeFile(file, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx' }).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const text = (await readFile(file, 'utf8')).trim();
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new StartError(`${file} does not hold a master key of 64 hexadecimal digits.`);
  return [Buffer.from(text, 'hex')];
}
