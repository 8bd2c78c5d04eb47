/** Agents as people run them from a terminal: one question each, whose answer needs a tool. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Client, type Command, getScriptPath, type Stage } from './client.ts';

const GPT = 'openai/gpt-5-mini';

const CLAUDE = 'anthropic/claude-haiku-4.5';

/** The question that has the model call a tool of the agent's, with arguments or with a plain text. */
function createPrompt(tool: string, input: Readonly<Record<string, unknown>> | string): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  return `Run it. [[sandbox reasoning=20 tool=${tool} text=${JSON.stringify(text)}]]`;
}

/** What it prints is not in the question: only a shell can know it. */
const SHELL = 'echo proof-$((6*7))';

async function writeHomeFile(homeDir: string, file: string, content: string): Promise<string> {
  const at = path.join(homeDir, file);
  await mkdir(path.dirname(at), { recursive: true });
  await writeFile(at, content);
  return at;
}

const writeJson = (homeDir: string, file: string, content: object) =>
  writeHomeFile(homeDir, file, JSON.stringify(content, null, 2));

/**
 * Its newest model, which it asks for by itself, writes programs that call its tools; others call them as functions.
 * @param config more lines of its configuration
 */
function createCodexClient(name: string, does: string, prompt: string, config = ''): Client {
  return {
    name,
    description: does,
    npm: { '@openai/codex': '0.169.0' },
    async command({ folder, homeDir, url, key }: Stage): Promise<Command> {
      await writeHomeFile(homeDir, '.codex/config.toml', `openai_base_url = "${url}/v1"\n${config}`);
      const bin = path.join(folder, 'node_modules/.bin/codex');
      // The shell runs without codex's own sandbox, which needs rights that a container does not have.
      const trust = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
      return { args: [bin, 'exec', ...trust, prompt], env: { CODEX_API_KEY: key } };
    },
  };
}

const MCP_SERVER = `
[mcp_servers.proof]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(getScriptPath('mcp-server.mjs'))}]
`;

const opencode: Client = {
  name: 'opencode',
  description: 'its shell, over chats',
  npm: { 'opencode-ai': '1.18.33' },
  async command({ folder, homeDir, url, key }) {
    const provider = {
      npm: '@ai-sdk/openai-compatible',
      name: 'Countinghouse',
      options: { baseURL: `${url}/v1`, apiKey: key },
      models: { [GPT]: { name: 'GPT' }, [CLAUDE]: { name: 'Claude' } },
    };
    const config = { provider: { countinghouse: provider }, autoupdate: false, share: 'disabled' };
    await writeJson(homeDir, '.config/opencode/opencode.json', config);
    const prompt = createPrompt('bash', { command: SHELL, description: 'Says the proof' });
    const bin = path.join(folder, 'node_modules/.bin/opencode');
    // It puts backslashes before the quotes of an argument, but not of its standard input.
    const args = ['sh', '-c', `printf %s "$0" | "${bin}" run -m "countinghouse/${GPT}" --auto`, prompt];
    return { args, env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' } };
  },
};

const qwenCode: Client = {
  name: 'qwen-code',
  description: 'its shell, over chats',
  npm: { '@qwen-code/qwen-code': '0.24.4' },
  async command({ folder, homeDir, url, key }) {
    await writeJson(homeDir, '.qwen/settings.json', {
      security: { auth: { selectedType: 'openai' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    });
    // It may miss what a command says in its last moment.
    const prompt = createPrompt('run_shell_command', { command: `${SHELL}; sleep 1`, is_background: false });
    const args = [path.join(folder, 'node_modules/.bin/qwen'), '--yolo', prompt];
    return { args, env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: CLAUDE } };
  },
};

const continueCli: Client = {
  name: 'continue',
  description: 'its shell, over chats',
  npm: { '@continuedev/cli': '1.5.47' },
  async command({ folder, homeDir, url, key }) {
    const model = { name: 'GPT', provider: 'openai', model: GPT, apiBase: `${url}/v1`, apiKey: key };
    // JSON is YAML.
    const config = await writeJson(homeDir, 'config.yaml', {
      name: 'Proof',
      version: '1.0.0',
      schema: 'v1',
      models: [model],
    });
    const prompt = createPrompt('Bash', { command: SHELL });
    const args = [path.join(folder, 'node_modules/.bin/cn'), '--config', config, '--auto', '-p', prompt];
    return { args, env: { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_CLI_DISABLE_COMMIT_SIGNATURE: '1' } };
  },
};

const cline: Client = {
  name: 'cline',
  description: 'its shell, over chats',
  npm: { cline: '3.0.65' },
  async command({ folder, url, key }) {
    const bin = path.join(folder, 'node_modules/.bin/cline');
    const prompt = createPrompt('run_commands', { commands: [SHELL] });
    const auth = `"${bin}" auth -p openai -k "${key}" -b "${url}/v1" -m "${GPT}"`;
    return { args: ['sh', '-c', `${auth} && "${bin}" -P openai -m "${GPT}" "$0"`, prompt] };
  },
};

const SHELL_BY_PROGRAM = `text(await tools.exec_command({ cmd: '${SHELL}' }))`;
const MCP_BY_PROGRAM = "text(await tools.mcp__proof__weather({ city: 'Ur' }))";
const DEFAULT_DESCRIPTION = 'as it comes, with the model that it asks for by itself';
const WITH_CLAUDE = `model = "${CLAUDE}"\nmodel_reasoning_effort = "medium"\n`;
const BY_SERVER = createPrompt('mcp__proof__weather', { city: 'Ur' });

export const AGENTS: readonly Client[] = [
  createCodexClient('codex', DEFAULT_DESCRIPTION, createPrompt('functions__exec', SHELL_BY_PROGRAM)),
  createCodexClient(
    'codex-mcp',
    `${DEFAULT_DESCRIPTION}, and a server of tools (MCP)`,
    createPrompt('functions__exec', MCP_BY_PROGRAM),
    MCP_SERVER,
  ),
  createCodexClient(
    'codex-claude',
    'with a model of Anthropic, which thinks',
    createPrompt('exec_command', { cmd: SHELL }),
    WITH_CLAUDE,
  ),
  createCodexClient('codex-claude-mcp', 'the same, and a server of tools (MCP)', BY_SERVER, WITH_CLAUDE + MCP_SERVER),
  opencode,
  qwenCode,
  continueCli,
  cline,
];
