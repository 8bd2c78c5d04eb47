/** Programs that Debian packages, unpacked into a folder below `.proofs/`: nothing is installed on the machine. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PLACE } from '../clients/install.ts';
import { run } from '../clients/run.ts';

const WITHIN_MS = 300_000;
const STAMP = 'unpacked';

export interface Unpacked {
  /** Where the programs are. */
  readonly bin: string;
  /** What they need to find their libraries. */
  readonly env: Record<string, string>;
}

/** @param version of the package, exactly; the libraries that the machine lacks come with it */
export async function unpack(name: string, version: string): Promise<Unpacked> {
  const folder = path.join(PLACE, `debian-${name}-${version}`);
  const usr = path.join(folder, 'root/usr');
  const unpacked = { bin: path.join(usr, 'bin'), env: { LD_LIBRARY_PATH: await librariesIn(usr) } };
  if ((await readFile(path.join(folder, STAMP), 'utf8').catch(() => '')) !== '') return unpacked;
  await rm(folder, { recursive: true, force: true });
  const archives = path.join(folder, 'archives');
  await mkdir(path.join(archives, 'partial'), { recursive: true });
  await must(['apt-get', 'update'], folder);
  const options = ['-y', '--no-install-recommends', '--download-only', '--reinstall', '-o', 'Debug::NoLocking=1'];
  await must(
    ['apt-get', 'install', ...options, '-o', `Dir::Cache::archives=${archives}`, `${name}=${version}`],
    folder,
  );
  for (const file of await readdir(archives)) {
    if (file.endsWith('.deb'))
      await must(['dpkg-deb', '-x', path.join(archives, file), path.join(folder, 'root')], folder);
  }
  await rm(archives, { recursive: true });
  await writeFile(path.join(folder, STAMP), version);
  return { ...unpacked, env: { LD_LIBRARY_PATH: await librariesIn(usr) } };
}

/** Debian has a folder for each kind of machine. */
async function librariesIn(usr: string): Promise<string> {
  const lib = path.join(usr, 'lib');
  const kinds = (await readdir(lib).catch(() => [])).filter((each) => each.includes('linux-gnu'));
  return [lib, ...kinds.map((each) => path.join(lib, each))].join(':');
}

async function must(command: readonly string[], cwd: string): Promise<void> {
  const env = { ...(process.env as Record<string, string>), DEBIAN_FRONTEND: 'noninteractive' };
  const { code, output } = await run(command, { cwd, env, withinMs: WITHIN_MS });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
}
