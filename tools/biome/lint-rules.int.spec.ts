import { spawnSync } from 'node:child_process';
import { cp, glob, mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';

const USES = [
  'Math.random()',
  'Date.now()',
  'new Date()',
  'AbortSignal.timeout(1)',
  'process.hrtime.bigint()',
  'globalThis.setTimeout',
  'performance.now()',
  'setTimeout(() => {}, 1)',
  'setInterval(() => {}, 1)',
  'setImmediate(() => {})',
  'crypto.randomUUID()',
];
const IMPORTS = [
  "import { setTimeout as delay } from 'node:timers/promises'",
  "import { setTimeout as delay } from 'node:timers'",
  "import { performance as delay } from 'node:perf_hooks'",
  "import { randomUUID as delay } from 'node:crypto'",
  "import { randomBytes as delay } from 'node:crypto'",
  "import { randomInt as delay } from 'node:crypto'",
  "import { webcrypto as delay } from 'node:crypto'",
  "import delay from 'node:crypto'",
];
const PROGRAM = [
  ...IMPORTS.map((line, i) => `${line.replace('delay', `delay${i}`)};`),
  ...USES.map((use, i) => `export const use${i} = ${use};`),
  "import { hash } from 'node:crypto';",
  `export const allowed = [new Date(5), hash('md5', ''), Math.max(1), ${IMPORTS.map((_, i) => `delay${i}`)}];`,
].join('\n');

const CHECKED = ['kernel', 'domain', 'application', 'sagas'].map((lib) => `libs/${lib}/src/example.ts`);
const UNCHECKED = ['libs/sagas/src/example.spec.ts', 'libs/connectors/src/example.ts', 'apps/gateway/src/example.ts'];

/** Lints the program at each of the paths with the rules of this project. Returns the reported lines by path. */
async function lint(paths: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>> {
  await using directory = await mkdtempDisposable(path.join(tmpdir(), 'lint-'));
  const write = async (name: string, text: string) => {
    const file = path.join(directory.path, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  await cp('biome.json', path.join(directory.path, 'biome.json'));
  for await (const plugin of glob('tools/biome/*.grit')) await write(plugin, await readFile(plugin, 'utf8'));
  for (const name of paths) await write(name, PROGRAM);
  const biome = path.resolve('node_modules/.bin/biome');
  const args = ['lint', '--reporter=json', '--max-diagnostics=none', '--vcs-enabled=false', '.'];
  const { stdout } = spawnSync(biome, args, { cwd: directory.path, encoding: 'utf8' });
  interface Diagnostic {
    readonly location: { readonly path: string; readonly start: { readonly line: number } };
  }
  const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: readonly Diagnostic[] };
  const byPath = Map.groupBy(diagnostics, ({ location }) => location.path);
  return new Map(
    paths.map((name) => [name, [...new Set(byPath.get(name)?.map(({ location }) => location.start.line))]]),
  );
}

let reported: ReadonlyMap<string, readonly number[]>;
beforeAll(async () => {
  reported = await lint([...CHECKED, ...UNCHECKED]);
});

test.each(CHECKED)('time and randomness that no Runtime provides are reported: %s', (name) => {
  const all = Array.from({ length: IMPORTS.length + USES.length }, (_, i) => i + 1);
  expect(reported.get(name)?.toSorted((a, b) => a - b)).toEqual(all);
});

test.each(UNCHECKED)('specs, adapters and apps may use those of Node: %s', (name) => {
  expect(reported.get(name)).toEqual([]);
});
