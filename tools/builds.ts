/** Builds earlier commits, for proofs that run them together with this build. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { root } from './processes.ts';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const run = promisify(execFile);

/**
 * Builds a commit of this repository in a new directory. It uses the packages that are installed here if its
 * `package-lock.json` names the same ones; otherwise they are installed.
 * @throws Error if the commit is not in this repository or cannot be built
 */
export async function buildCommit(commit: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const archive = path.join(directory, 'source.tar');
  await run('git', ['archive', '--output', archive, commit], { cwd: root });
  await run('tar', ['-xf', archive], { cwd: directory });
  const options = { cwd: directory, maxBuffer: MAX_OUTPUT_BYTES };
  if ((await readLockedPackages(directory)) === (await readLockedPackages(root)))
    await symlink(path.join(root, 'node_modules'), path.join(directory, 'node_modules'));
  else await run('npm', ['ci', '--no-audit', '--no-fund'], options);
  await run('npm', ['run', '--silent', 'build'], { ...options, env: { ...process.env, COMMIT: commit } });
}

/** Returns the locked packages as JSON, without those properties of the project itself that do not affect them. */
async function readLockedPackages(directory: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(path.join(directory, 'package-lock.json'), 'utf8'));
  const { name: _name, version: _version, ...project } = packages[''];
  return JSON.stringify({ ...packages, '': project });
}
