/**
 * The compared gateway: @portkey-ai/gateway, a proxy without a ledger. It is installed on demand, outside the project's
 * dependencies.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root, type StartedProcess, startProgram } from '../processes.ts';

const VERSION = '1.15.2';
const DIRECTORY = path.join(root, '.bench/portkey');
const PORT = 8787;

/** With newer versions of hono, this version of the gateway responds to every streaming request with an error. */
const MANIFEST = {
  private: true,
  dependencies: { '@portkey-ai/gateway': VERSION },
  overrides: { hono: '4.9.7', '@hono/node-server': '1.13.5' },
};

export async function startPortkey(): Promise<StartedProcess & { readonly url: string }> {
  const program = path.join(DIRECTORY, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(program)) {
    mkdirSync(DIRECTORY, { recursive: true });
    writeFileSync(path.join(DIRECTORY, 'package.json'), JSON.stringify(MANIFEST));
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: DIRECTORY,
      stdio: 'ignore',
    });
  }
  const env = { TRUSTED_CUSTOM_HOSTS: '127.0.0.1', NODE_ENV: 'production' };
  const command = [process.execPath, program, '--headless', `--port=${PORT}`];
  const started = await startProgram(command, env, /running at|Ready|listening/i, { cwd: DIRECTORY });
  return { ...started, url: `http://127.0.0.1:${PORT}` };
}
