/** Builds programs of Go modules from the module proxy into a folder below `.proofs/`. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PROOFS_DIR } from '../clients/install.ts';
import { runCommand } from '../clients/run.ts';

const BUILT_WITHIN_MS = 1_500_000;
const STAMP = 'built.json';

export interface GoProgramsParams {
  readonly name: string;
  /** Versions by module. */
  readonly modules: Readonly<Record<string, string>>;
  /** The main packages to build. */
  readonly programs: readonly string[];
  /** The `replace` directives of the modules. Go ignores them in dependencies, so they are repeated here. */
  readonly replacements: Readonly<Record<string, string>>;
}

/** @returns the folder of the programs */
export async function buildGoPrograms({ name, modules, programs, replacements }: GoProgramsParams): Promise<string> {
  const folder = path.join(PROOFS_DIR, `go-${name}`);
  const bin = path.join(folder, 'bin');
  const expectedStamp = JSON.stringify({ modules, programs, replaced: replacements }, null, 2);
  if ((await readFile(path.join(folder, STAMP), 'utf8').catch(() => '')) === expectedStamp) return bin; // not built
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const required = Object.entries(modules).map(([module, version]) => `require ${module} ${version}`);
  const instead = Object.entries(replacements).map(([module, other]) => `replace ${module} => ${other}`);
  await writeFile(path.join(folder, 'go.mod'), ['module proof', 'go 1.23', ...required, ...instead, ''].join('\n'));
  const imports = programs.map((program) => `import _ "${program}"`);
  await writeFile(
    path.join(folder, 'programs.go'),
    ['//go:build programs', 'package proof', ...imports, ''].join('\n'),
  );
  await runOrThrow(['go', 'mod', 'tidy'], folder);
  await runOrThrow(['go', 'build', '-buildvcs=false', '-o', `${bin}/`, ...programs], folder);
  await writeFile(path.join(folder, STAMP), expectedStamp);
  return bin;
}

async function runOrThrow(command: readonly string[], cwd: string): Promise<void> {
  const { code, output } = await runCommand(command, {
    cwd,
    env: process.env as Record<string, string>,
    timeoutMs: BUILT_WITHIN_MS,
  });
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
}
