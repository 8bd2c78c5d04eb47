/** Definitions of clients: their packages and how to run them. */
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../processes.ts';
import type { Installable, Packages } from './install.ts';

/** The environment in which a client runs. */
export interface Stage {
  /** The directory with the packages of the client. */
  readonly folder: string;
  /** The home directory of the client. It is empty before `command`; its folder `work` is the working directory. */
  readonly homeDir: string;
  /** The URL under which the client reaches the gateway or the local proxy, without a path. */
  readonly url: string;
  readonly key: string;
}

export interface Command {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The models that a client requests by default. The shipped catalogue knows all these names. */
export interface DefaultModels {
  /** The day on which this version of the client was published. */
  readonly released: string;
  /** The requested names, by the settings with which they are requested. */
  readonly requested: Readonly<Record<string, string>>;
}

export interface Client extends Installable {
  readonly defaultModels?: DefaultModels;
  /** Whether the client calls a private model through the local proxy. */
  readonly isPrivate?: boolean;
  readonly name: string;
  /** A short description for the documentation. */
  readonly description: string;
  /** Prepares a run of the client. @returns its command */
  command(stage: Stage): Promise<Command>;
}

/** The text that tools return. It is not part of a prompt, so it shows that a tool has run. */
export const TOOL_RESULT = 'proof-42';

const SCRIPTS = path.join(root, 'tools/proofs/clients/scripts');

export function getScriptPath(name: string): string {
  return path.join(SCRIPTS, name);
}

/** A library for Node with a script that uses it. The script is copied to the packages, so that its imports resolve. */
export function createNodeClient(name: string, does: string, script: string, npm: Packages): Client {
  const command = async ({ folder, url, key }: Stage): Promise<Command> => {
    const copy = path.join(folder, script);
    await copyFile(getScriptPath(script), copy);
    return { args: [process.execPath, copy], env: createEnvironment(url, key) };
  };
  return { name, description: does, npm, command };
}

/** A library for Python with a script that uses it. */
export function createPythonClient(name: string, does: string, script: string, pypi: Packages): Client {
  const command = async ({ folder, url, key }: Stage): Promise<Command> => {
    return { args: [path.join(folder, 'venv/bin/python'), getScriptPath(script)], env: createEnvironment(url, key) };
  };
  return { name, description: does, pypi, command };
}

/** Creates the variables that scripts and programs read. */
export function createEnvironment(url: string, key: string) {
  return {
    GATEWAY_URL: url,
    API_KEY: key,
    TOOL_RESULT,
    NODE: process.execPath,
    MCP_SERVER: getScriptPath('mcp-server.mjs'),
  };
}
