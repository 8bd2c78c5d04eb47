/**
 * `npm ci` runs this script last. If the programs do not support the Node that runs npm, it installs the pinned one into
 * `.node` and links it as `node_modules/.bin/node`, which is the first `node` that npm's scripts find. The link has an
 * absolute path, so that it also works in copies of `node_modules`. A production install gets no second Node.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = import.meta.dirname ?? path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(SOURCE, '../..');
const TARGET = path.join(ROOT, '.node');
const PACKAGES = path.join(TARGET, 'node_modules');
const LINK = path.join(ROOT, 'node_modules/.bin/node');
const LOCK = 'package-lock.json';
/** A copy of the lock of a completed installation. */
const STAMP = 'installed.json';
/** Headers and manuals, which are a third of the package. */
const UNUSED = ['include', 'share'];

/** The same as `isSupportedNode` of #foundation/node-version, which this script cannot import before the build. */
export function isSupported(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major >= 26 || (major === 24 && minor >= 15);
}

/** @returns the path of the binary, or undefined if there is no package for this platform */
function findBinary() {
  const folders = existsSync(PACKAGES) ? readdirSync(PACKAGES) : [];
  return folders.map((folder) => path.join(PACKAGES, folder, 'bin/node')).find((file) => existsSync(file));
}

function isInstalled() {
  const stamp = path.join(TARGET, STAMP);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === readFileSync(path.join(SOURCE, LOCK), 'utf8');
}

/** Installs the package of this platform with the npm that runs this script, at the version and hash of the lock. */
function installPackage({ npm_node_execpath: node = process.execPath, npm_execpath: npm }) {
  rmSync(TARGET, { recursive: true, force: true });
  mkdirSync(TARGET);
  for (const file of ['package.json', LOCK]) copyFileSync(path.join(SOURCE, file), path.join(TARGET, file));
  const args = ['ci', '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync(node, [npm, ...args], { cwd: TARGET, stdio: 'inherit' });
  const binary = findBinary();
  for (const folder of binary ? UNUSED : [])
    rmSync(path.resolve(binary, '../..', folder), { recursive: true, force: true });
  copyFileSync(path.join(TARGET, LOCK), path.join(TARGET, STAMP));
}

function removeLink() {
  if (lstatSync(LINK, { throwIfNoEntry: false })) rmSync(LINK);
}

function main() {
  const { npm_config_user_agent: userAgent = '', npm_config_omit: omit = '', NODE_ENV } = process.env;
  if (omit.split(/\s+/).includes('dev') || NODE_ENV === 'production') return;
  if (!existsSync(path.dirname(LINK))) return; // `npm install --package-lock-only` also runs this script
  // Not the version of this process: if the link exists, that is the pinned one.
  const version = /node\/v(\S+)/.exec(userAgent)?.[1] ?? process.versions.node;
  removeLink();
  if (isSupported(version)) return;
  if (!isInstalled()) installPackage(process.env);
  const binary = findBinary();
  if (binary) symlinkSync(binary, LINK);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
