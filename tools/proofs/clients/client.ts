/** What the proof knows of a client. */
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import type { Installable, Packages } from './install.ts';

/** Where a client runs. */
export interface Stage {
  /** What was installed. */
  readonly folder: string;
  /** An empty directory, which is its home and where it works. */
  readonly homeDir: string;
  /** Address of the gateway, without a path. */
  readonly url: string;
  readonly key: string;
}

export interface Command {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Client extends Installable {
  /** It speaks with the local proxy, and so with an enclave. */
  readonly isPrivate?: boolean;
  readonly name: string;
  /** For the documentation, in a few words. */
  readonly description: string;
  /** Prepares the home. @returns what runs there */
  command(stage: Stage): Promise<Command>;
}

/** What every tool returns: a model that was not told cannot say it. */
export const TOOL_RESULT = 'proof-42';

const SCRIPTS = path.join(root, 'tools/proofs/clients/scripts');

export function getScriptPath(name: string): string {
  return path.join(SCRIPTS, name);
}

/** A library of Node's, with the script that uses it. Imports are looked for beside the script: it is copied to them. */
export function createNodeClient(name: string, does: string, script: string, npm: Packages): Client {
  const command = async ({ folder, url, key }: Stage): Promise<Command> => {
    const copy = path.join(folder, script);
    await copyFile(getScriptPath(script), copy);
    return { args: [process.execPath, copy], env: createEnvironment(url, key) };
  };
  return { name, description: does, npm, command };
}

/** A library of Python's, with the script that uses it. */
export function createPythonClient(name: string, does: string, script: string, pypi: Packages): Client {
  const command = async ({ folder, url, key }: Stage): Promise<Command> => {
    return { args: [path.join(folder, 'venv/bin/python'), getScriptPath(script)], env: createEnvironment(url, key) };
  };
  return { name, description: does, pypi, command };
}

function createEnvironment(url: string, key: string) {
  return {
    GATEWAY_URL: url,
    API_KEY: key,
    TOOL_RESULT,
    NODE: process.execPath,
    MCP_SERVER: getScriptPath('mcp-server.mjs'),
  };
}
