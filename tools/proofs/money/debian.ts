/** Unpacks programs of Debian packages into a folder below `.proofs/`, without installing them on the host. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PROOFS_DIR } from '../clients/install.ts';
import { runCommand } from '../clients/run.ts';

const WITHIN_MS = 300_000;
const STAMP = 'unpacked';

export interface UnpackedPackage {
  /** The directory of the programs. */
  readonly bin: string;
  /** The environment in which the programs find their libraries. */
  readonly env: Record<string, string>;
}

/** Also unpacks libraries that the host lacks. @param version the exact version of the package */
export async function unpackDebianPackage(name: string, version: string): Promise<UnpackedPackage> {
  const folder = path.join(PROOFS_DIR, `debian-${name}-${version}`);
  const usr = path.join(folder, 'root/usr');
  const unpacked = { bin: path.join(usr, 'bin'), env: { LD_LIBRARY_PATH: await findLibraryPath(usr) } };
  if ((await readFile(path.join(folder, STAMP), 'utf8').catch(() => '')) !== '') return unpacked; // not unpacked
  await rm(folder, { recursive: true, force: true });
  const archives = path.join(folder, 'archives');
  await mkdir(path.join(archives, 'partial'), { recursive: true });
  await runOrThrow(['apt-get', 'update'], folder);
  const options = ['-y', '--no-install-recommends', '--download-only', '--reinstall', '-o', 'Debug::NoLocking=1'];
  await runOrThrow(
    ['apt-get', 'install', ...options, '-o', `Dir::Cache::archives=${archives}`, `${name}=${version}`],
    folder,
  );
  for (const file of await readdir(archives)) {
    if (file.endsWith('.deb'))
      await runOrThrow(['dpkg-deb', '-x', path.join(archives, file), path.join(folder, 'root')], folder);
  }
  await rm(archives, { recursive: true });
  await writeFile(path.join(folder, STAMP), version);
  return { ...unpacked, env: { LD_LIBRARY_PATH: await findLibraryPath(usr) } };
}

/** Returns the library folders, separated by colons. Debian has one for each architecture. */
async function findLibraryPath(usr: string): Promise<string> {
  const lib = path.join(usr, 'lib');
  const kinds = (await readdir(lib).catch(() => [])).filter((name) => name.includes('linux-gnu')); // not unpacked
  return [lib, ...kinds.map((kind) => path.join(lib, kind))].join(':');
}

async function runOrThrow(command: readonly string[], cwd: string): Promise<void> {
  const env = { ...(process.env as Record<string, string>), DEBIAN_FRONTEND: 'noninteractive' };
  const { code, output } = await runCommand(command, { cwd, env, timeoutMs: WITHIN_MS });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
}
