import { randomBytes } from 'node:crypto';
import { link, rm, writeFile } from 'node:fs/promises';

/**
 * Creates a file with a secret that only its owner may read, unless it exists. The file is written under a temporary
 * name and then linked, so that no process reads an incomplete secret, even if this one is killed.
 */
export async function createSecretFile(file: string, secret: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, secret, { mode: 0o600, flush: true });
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // otherwise another process was first
  } finally {
    await rm(draft, { force: true });
  }
}
