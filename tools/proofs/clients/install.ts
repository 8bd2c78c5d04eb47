/**
 * Installs clients when a proof needs them, each version in its own folder below `.proofs/`, outside the project's
 * dependencies: from npm, or from PyPI in a virtual environment. Programs are compiled there too (compiled.ts). All of
 * `.proofs/` may be deleted to free disk space.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import { runCommand } from './run.ts';

/** Exact versions by package name. */
export type Packages = Readonly<Record<string, string>>;

/** A program that uses a client and must be compiled. */
export interface Program {
  readonly language: string;
  /** The package of the client. */
  readonly package: string;
  readonly version: string;
  /** @returns the folder with the compiled program */
  build(): Promise<string>;
}

/** The first package is the client; the others are packages that it requires. */
export interface Installable {
  readonly npm?: Packages;
  readonly pypi?: Packages;
  readonly program?: Program;
}

const INSTALLED_WITHIN_MS = 600_000;
const STAMP = 'installed.json';

/** The directory of installed packages and of the results of the last runs. */
export const PROOFS_DIR = path.join(root, '.proofs');

export function getVersion({ npm, pypi, program }: Installable): string {
  return program?.version ?? Object.values({ ...npm, ...pypi })[0] ?? '';
}

/**
 * Installs the packages unless they are already installed, or builds the program.
 * @returns their folder; clients with the same packages share it
 */
export async function install({ npm, pypi, program }: Installable): Promise<string> {
  if (program) return program.build();
  const [[name = '', version] = []] = Object.entries({ ...npm, ...pypi });
  const folder = path.join(
    PROOFS_DIR,
    `${npm ? 'node' : 'python'}-${name.replace('@', '').replaceAll('/', '-')}-${version}`,
  );
  const expectedStamp = JSON.stringify({ npm, pypi }, null, 2);
  const stamp = path.join(folder, STAMP);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === expectedStamp) return folder; // not installed
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (npm) await installFromNpm(folder, npm);
  if (pypi) await installFromPypi(folder, pypi);
  await writeFile(stamp, expectedStamp);
  return folder;
}

async function installFromNpm(folder: string, dependencies: Packages): Promise<void> {
  const manifest = { private: true, type: 'module', dependencies };
  await writeFile(path.join(folder, 'package.json'), JSON.stringify(manifest, null, 2));
  await runOrThrow(['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'], folder);
}

async function installFromPypi(folder: string, packages: Packages): Promise<void> {
  const pinned = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
  await runOrThrow(['python3', '-m', 'venv', 'venv'], folder);
  await runOrThrow(['venv/bin/pip', 'install', '--quiet', '--disable-pip-version-check', ...pinned], folder);
}

interface RunOptions {
  /** Variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** @throws Error if the command does not exist, with the code `ENOENT`, or fails */
export async function runOrThrow(command: readonly string[], cwd: string, options: RunOptions = {}): Promise<void> {
  const env = { ...(process.env as Record<string, string>), ...options.env };
  const { timeoutMs = INSTALLED_WITHIN_MS } = options;
  const { code, output } = await runCommand(command, { cwd, env, timeoutMs });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
}
