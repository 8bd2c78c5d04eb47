/**
 * Clients for Go and Rust. Each has a program in the Go module `scripts/go` or in the Cargo package `scripts/rust`,
 * which pin all versions, also the ones here, and are built when a proof needs them. What the builds download and compile
 * is below `.proofs/`.
 */
import path from 'node:path';
import { type Client, createEnvironment, getScriptPath, type Stage } from './client.ts';
import { PROOFS_DIR, runOrThrow } from './install.ts';

/** A first build compiles hundreds of packages. */
const BUILT_WITHIN_MS = 3_600_000;

const GO_DIR = getScriptPath('go');
const RUST_DIR = getScriptPath('rust');
const GO_BUILD = path.join(PROOFS_DIR, 'go');
const RUST_BUILD = path.join(PROOFS_DIR, 'rust');

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

async function buildRust(program: string): Promise<string> {
  const env = { CARGO_HOME: path.join(RUST_BUILD, 'home'), CARGO_TARGET_DIR: path.join(RUST_BUILD, 'target') };
  const command = ['cargo', 'build', '--quiet', '--locked', '--bin', program];
  await build(command, { cwd: RUST_DIR, env, compiler: 'Rust 1.95' });
  return path.join(RUST_BUILD, 'target/debug');
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

/**
 * @param name the name of the client, of its dependency in `scripts/rust`, and of its program there
 * @param crate the package of the dependency
 */
function createRustClient(name: string, description: string, version: string, crate = name): Client {
  const program = { language: 'Rust', package: crate, version, build: () => buildRust(name) };
  return { name, description, program, command: createCommand(name) };
}

export const COMPILED_CLIENTS: readonly Client[] = [
  createGoClient(
    'openai-go',
    'chats and Responses, complete and streaming with its accumulator, tools, structured output, embeddings',
    'github.com/openai/openai-go/v3',
    '3.99.0',
  ),
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
    'genkit',
    'chats through its plugin for compatible APIs, complete and streaming, a tool that it runs, embeddings',
    'github.com/firebase/genkit/go',
    '1.4.0',
  ),
  createGoClient(
    'langchaingo',
    'chats, complete and streaming with usage, tools, embeddings',
    'github.com/tmc/langchaingo',
    '0.1.14',
  ),
  createRustClient(
    'async-openai',
    'chats and Responses, complete and streaming, tools, structured output, embeddings, a streamed image',
    '0.43.0',
  ),
  createRustClient(
    'async-openai-0-35',
    'chats, streaming, tools; it repeats the request of an interrupted stream with `Last-Event-ID`',
    '0.35.0',
    'async-openai',
  ),
  createRustClient('rig', 'agents over chats and Responses, complete and streaming, a tool that it runs', '0.44.0'),
  createRustClient('genai', 'chats, complete and streaming with usage, tools, structured output, embeddings', '0.7.2'),
  createRustClient('openai-api-rs', 'chats, complete and streaming, tools, Responses, embeddings', '10.0.2'),
];
