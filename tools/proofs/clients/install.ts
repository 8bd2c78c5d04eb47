/**
 * Clients are installed when they are needed, each into a folder of its own below `.proofs/`, outside the project's
 * dependencies: from npm, or from PyPI into a virtual environment.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import { run } from './run.ts';

/** Names and exact versions. */
export type Packages = Readonly<Record<string, string>>;

export interface Installable {
  readonly name: string;
  readonly npm?: Packages;
  readonly pypi?: Packages;
}

const INSTALLED_WITHIN_MS = 600_000;
const STAMP = 'installed.json';

/** @returns the client's folder */
export async function install({ name, npm, pypi }: Installable): Promise<string> {
  const folder = path.join(root, '.proofs', name);
  const wanted = JSON.stringify({ npm, pypi }, null, 2);
  const stamp = path.join(folder, STAMP);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (npm) await installFromNpm(folder, npm);
  if (pypi) await installFromPypi(folder, pypi);
  await writeFile(stamp, wanted);
  return folder;
}

async function installFromNpm(folder: string, dependencies: Packages): Promise<void> {
  const manifest = { private: true, type: 'module', dependencies };
  await writeFile(path.join(folder, 'package.json'), JSON.stringify(manifest, null, 2));
  await installed(['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'], folder);
}

async function installFromPypi(folder: string, packages: Packages): Promise<void> {
  const pinned = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
  await installed(['python3', '-m', 'venv', 'venv'], folder);
  await installed(['venv/bin/pip', 'install', '--quiet', '--disable-pip-version-check', ...pinned], folder);
}

async function installed(command: readonly string[], cwd: string): Promise<void> {
  const env = process.env as Record<string, string>;
  const { code, output } = await run(command, { cwd, env, withinMs: INSTALLED_WITHIN_MS });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
}
