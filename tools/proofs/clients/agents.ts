/** Agents as users run them in a terminal. Each gets one prompt that requires a tool. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Client, type Command, type DefaultModels, getScriptPath, type Stage } from './client.ts';

const GPT = 'openai/gpt-5-mini';

const CLAUDE = 'anthropic/claude-haiku-4.5';

/** The names were read from the requests of these versions to a server that recorded them. */
const CODEX_DEFAULTS: DefaultModels = {
  released: '2026-11-20',
  requested: { 'without settings': 'gpt-6.2-sol' },
};

/** Claude Code uses a small model for work in the background only if the base URL is Anthropic's. */
const CLAUDE_CODE_DEFAULTS: DefaultModels = {
  released: '2026-11-24',
  requested: {
    'without settings, and in the background': 'claude-opus-5-5',
    '`--model opus`': 'claude-opus-5-5',
    '`--model sonnet`': 'claude-sonnet-5-5',
    '`--model haiku`': 'claude-haiku-5-5',
    '`--model fable`': 'claude-fable-5-2',
  },
};

/** Returns a prompt that makes the model call a tool of the agent, with JSON arguments or with text. */
function createPrompt(tool: string, input: Readonly<Record<string, unknown>> | string): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  return `Run it. [[sandbox reasoning=20 tool=${tool} text=${JSON.stringify(text)}]]`;
}

const DEFAULT_DESCRIPTION = 'with its default settings and its default model';

/** Prints a text that the prompt does not contain, so that only a shell can produce it. */
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
 * Codex's newest model, which is its default, calls tools by writing programs; other models call them as functions.
 * @param config additional lines of its configuration
 */
function createCodexClient(name: string, does: string, prompt: string, config = ''): Client {
  return {
    name,
    description: does,
    npm: { '@openai/codex': '0.171.0' },
    defaultModels: CODEX_DEFAULTS,
    async command({ folder, homeDir, url, key }: Stage): Promise<Command> {
      await writeHomeFile(homeDir, '.codex/config.toml', `openai_base_url = "${url}/v1"\n${config}`);
      const bin = path.join(folder, 'node_modules/.bin/codex');
      // The shell runs without Codex's own sandbox, which requires rights that a container does not have.
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

const claudeCode: Client = {
  name: 'claude-code',
  description: `its shell tool, ${DEFAULT_DESCRIPTION}`,
  npm: { '@anthropic-ai/claude-code': '2.1.332' },
  defaultModels: CLAUDE_CODE_DEFAULTS,
  async command({ folder, url, key }) {
    const prompt = createPrompt('Bash', { command: SHELL, description: 'Says the proof' });
    const bin = path.join(folder, 'node_modules/.bin/claude');
    const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
    return { args: [bin, '-p', prompt, '--allowedTools', 'Bash'], env };
  },
};

const opencode: Client = {
  name: 'opencode',
  description: 'its shell tool, over chats',
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
    // opencode escapes quotes in an argument with backslashes, but not in its standard input.
    const args = ['sh', '-c', `printf %s "$0" | "${bin}" run -m "countinghouse/${GPT}" --auto`, prompt];
    return { args, env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' } };
  },
};

const qwenCode: Client = {
  name: 'qwen-code',
  description: 'its shell tool, over chats',
  npm: { '@qwen-code/qwen-code': '0.24.4' },
  async command({ folder, homeDir, url, key }) {
    await writeJson(homeDir, '.qwen/settings.json', {
      security: { auth: { selectedType: 'openai' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    });
    // qwen-code may miss output that a command writes immediately before it ends.
    const prompt = createPrompt('run_shell_command', { command: `${SHELL}; sleep 1`, is_background: false });
    const args = [path.join(folder, 'node_modules/.bin/qwen'), '--yolo', prompt];
    return { args, env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: CLAUDE } };
  },
};

const continueCli: Client = {
  name: 'continue',
  description: 'its shell tool, over chats',
  npm: { '@continuedev/cli': '1.5.47' },
  async command({ folder, homeDir, url, key }) {
    const model = { name: 'GPT', provider: 'openai', model: GPT, apiBase: `${url}/v1`, apiKey: key };
    // JSON is valid YAML.
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
  description: 'its shell tool, over chats',
  npm: { cline: '3.0.65' },
  async command({ folder, url, key }) {
    const bin = path.join(folder, 'node_modules/.bin/cline');
    const prompt = createPrompt('run_commands', { commands: [SHELL] });
    const auth = `"${bin}" auth -p openai -k "${key}" -b "${url}/v1" -m "${GPT}"`;
    return { args: ['sh', '-c', `${auth} && "${bin}" -P openai -m "${GPT}" "$0"`, prompt] };
  },
};

/** Writes a script, and runs it: the result is the text of the proof only if Codex has written the file. */
const FILE_BY_PROGRAM = [
  `await tools.apply_patch('*** Begin Patch\\n*** Add File: proof.sh\\n+${SHELL}\\n*** End Patch');`,
  "text(await tools.exec_command({ cmd: 'sh proof.sh' }));",
].join('\n');
const MCP_BY_PROGRAM = "text(await tools.mcp__proof__forecast({ city: 'Ur' }))";
const WITH_CLAUDE = `model = "${CLAUDE}"\nmodel_reasoning_effort = "medium"\n`;
const BY_SERVER = createPrompt('mcp__proof__forecast', { city: 'Ur' });

export const AGENTS: readonly Client[] = [
  createCodexClient(
    'codex',
    `writes a file and runs it, ${DEFAULT_DESCRIPTION}`,
    createPrompt('functions__exec', FILE_BY_PROGRAM),
  ),
  createCodexClient(
    'codex-mcp',
    `${DEFAULT_DESCRIPTION}, and an MCP server`,
    createPrompt('functions__exec', MCP_BY_PROGRAM),
    MCP_SERVER,
  ),
  createCodexClient(
    'codex-claude',
    'with a reasoning model of Anthropic',
    createPrompt('exec_command', { cmd: SHELL }),
    WITH_CLAUDE,
  ),
  createCodexClient('codex-claude-mcp', 'the same, and an MCP server', BY_SERVER, WITH_CLAUDE + MCP_SERVER),
  claudeCode,
  opencode,
  qwenCode,
  continueCli,
  cline,
];
