/**
 * Clients for Go. Each has a program in the Go module `scripts/go`, which pins all versions, also the ones here. The
 * programs are built when a proof needs them. What the builds download and compile is below `.proofs/`.
 */
import path from 'node:path';
import { type Client, createEnvironment, getScriptPath, type Stage } from './client.ts';
import { PROOFS_DIR, runOrThrow } from './install.ts';

/** A first build compiles hundreds of packages. */
const BUILT_WITHIN_MS = 3_600_000;

const GO_DIR = getScriptPath('go');
const GO_BUILD = path.join(PROOFS_DIR, 'go');

async function buildGo(program: string): Promise<string> {
  const env = {
    GOPATH: path.join(GO_BUILD, 'path'),
    GOCACHE: path.join(GO_BUILD, 'cache'),
    GOTOOLCHAIN: 'local',
    // Without this flag Go makes the downloaded modules read-only, so that `.proofs/` could not be deleted.
    GOFLAGS: '-modcacherw -buildvcs=false -mod=readonly',
  };
  const folder = path.join(GO_BUILD, 'bin');
  await build(['go', 'build', '-o', `${folder}/`, `./${program}`], { cwd: GO_DIR, env, compiler: 'Go 1.26' });
  return folder;
}

interface BuildOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The name and the minimum version. */
  readonly compiler: string;
}

/** @throws Error if the compiler is missing, or does not succeed */
async function build(command: readonly string[], { cwd, env, compiler }: BuildOptions): Promise<void> {
  await runOrThrow(command, cwd, { env, timeoutMs: BUILT_WITHIN_MS }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Error(`${command[0]} is missing: install ${compiler} or newer`) : error;
  });
}

function createCommand(program: string) {
  return async ({ folder, url, key }: Stage) => ({
    args: [path.join(folder, program)],
    env: createEnvironment(url, key),
  });
}

/** @param module the client's Go module; `scripts/go` has a program with the name of the client */
function createGoClient(name: string, description: string, module: string, version: string): Client {
  const program = { language: 'Go', package: module, version, build: () => buildGo(name) };
  return { name, description, program, command: createCommand(name) };
}

export const COMPILED_CLIENTS: readonly Client[] = [
  createGoClient(
    'go-openai',
    'chats and Responses, complete and streaming, tools, structured output, embeddings',
    'github.com/sashabaranov/go-openai',
    '1.43.0',
  ),
  createGoClient(
    'eino',
    'chats, complete and streaming, its ReAct agent with a tool',
    'github.com/cloudwego/eino-ext/components/model/openai',
    '0.1.7',
  ),
  createGoClient(
    'langchaingo',
    'chats, complete and streaming with usage, tools, embeddings',
    'github.com/tmc/langchaingo',
    '0.1.14',
  ),
];
