/** Creates the password and the database cluster in the data directory. */
import { randomBytes } from 'node:crypto';
import { existsSync, openSync } from 'node:fs';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createSecretFile } from '../secret-file.ts';
import { StartError } from '../start-error.ts';
import { getDataPath, type OsUser, type PostgresBinaries, spawnAsUser } from './binaries.ts';

/** A database cluster, which is PostgreSQL's name for a data directory, and the operating system user of its server. */
export interface PostgresCluster {
  readonly dir: string;
  readonly binaries: PostgresBinaries;
  readonly user: OsUser;
  readonly password: string;
}

/**
 * Returns the password of the server, which protects it from other users of the host: they can connect to loopback too.
 */
export async function readOrCreatePassword(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'postgres.password');
  if (!existsSync(file)) await createSecretFile(file, randomBytes(24).toString('hex'));
  return readFile(file, 'utf8');
}

/** Creates the cluster under a temporary name and then renames it, so that an incomplete one is never used. */
export async function initializeCluster({ dir, binaries, user, password }: PostgresCluster): Promise<void> {
  if (existsSync(dir)) throw new StartError(`${dir} exists and is not a PostgreSQL data directory.`);
  const draft = `${dir}.${randomBytes(6).toString('hex')}`;
  const passwordFile = `${draft}.password`;
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600 });
    await changeOwner(draft, user);
    await changeOwner(passwordFile, user);
    const options = ['--username=postgres', '--auth=scram-sha-256', '--pwfile=/dev/stdin', '--no-instructions'];
    const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
    const args = ['-D', getDataPath(draft, user), ...options, ...locale];
    const run = spawnAsUser(draft, user, [binaries.initdb, ...args], [openSync(passwordFile, 'r'), 'ignore', 'pipe']);
    let errorOutput = '';
    run.stderr?.on('data', (chunk) => {
      errorOutput += chunk;
    });
    const code = await new Promise((resolve, reject) => run.once('error', reject).once('close', resolve));
    if (code !== 0) throw new Error(errorOutput.trim().split('\n')[0] || `initdb ended with code ${code}`);
    await rename(draft, dir).catch((error) => {
      if (!existsSync(path.join(dir, 'PG_VERSION'))) throw error; // otherwise another process was first
    });
  } finally {
    await rm(passwordFile, { force: true });
    await rm(draft, { recursive: true, force: true });
  }
}

async function changeOwner(file: string, { uid, gid }: OsUser): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
}
