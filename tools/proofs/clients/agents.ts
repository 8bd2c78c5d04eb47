/** Agents as people run them from a terminal: one question each, whose answer needs a tool. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Client, type Command, type Stage, scriptFile } from './client.ts';

const GPT = 'openai/gpt-5-mini';

const CLAUDE = 'anthropic/claude-haiku-4.5';

/** The question that has the model call a tool of the agent's, with arguments or with a plain text. */
function asking(tool: string, input: Readonly<Record<string, unknown>> | string): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  return `Run it. [[sandbox reasoning=20 tool=${tool} text=${JSON.stringify(text)}]]`;
}

/** What it prints is not in the question: only a shell can know it. */
const SHELL = 'echo proof-$((6*7))';

async function write(home: string, file: string, content: string): Promise<string> {
  const at = path.join(home, file);
  await mkdir(path.dirname(at), { recursive: true });
  await writeFile(at, content);
  return at;
}

const writeJson = (home: string, file: string, content: object) => write(home, file, JSON.stringify(content, null, 2));

/**
 * Its newest model, which it asks for by itself, writes programs that call its tools; others call them as functions.
 * @param config more lines of its configuration
 */
function codex(name: string, does: string, question: string, config = ''): Client {
  return {
    name,
    does,
    npm: { '@openai/codex': '0.169.0' },
    async command({ folder, home, url, key }: Stage): Promise<Command> {
      await write(home, '.codex/config.toml', `openai_base_url = "${url}/v1"\n${config}`);
      const bin = path.join(folder, 'node_modules/.bin/codex');
      // The shell runs without codex's own sandbox, which needs rights that a container does not have.
      const trust = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
      return { args: [bin, 'exec', ...trust, question], env: { CODEX_API_KEY: key } };
    },
  };
}

const MCP_SERVER = `
[mcp_servers.proof]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(scriptFile('mcp-server.mjs'))}]
`;

const opencode: Client = {
  name: 'opencode',
  does: 'its shell, over chats',
  npm: { 'opencode-ai': '1.18.33' },
  async command({ folder, home, url, key }) {
    const provider = {
      npm: '@ai-sdk/openai-compatible',
      name: 'Countinghouse',
      options: { baseURL: `${url}/v1`, apiKey: key },
      models: { [GPT]: { name: 'GPT' }, [CLAUDE]: { name: 'Claude' } },
    };
    const config = { provider: { countinghouse: provider }, autoupdate: false, share: 'disabled' };
    await writeJson(home, '.config/opencode/opencode.json', config);
    const question = asking('bash', { command: SHELL, description: 'Says the proof' });
    const bin = path.join(folder, 'node_modules/.bin/opencode');
    // It puts backslashes before the quotes of an argument, but not of its standard input.
    const args = ['sh', '-c', `printf %s "$0" | "${bin}" run -m "countinghouse/${GPT}" --auto`, question];
    return { args, env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' } };
  },
};

const qwenCode: Client = {
  name: 'qwen-code',
  does: 'its shell, over chats',
  npm: { '@qwen-code/qwen-code': '0.24.4' },
  async command({ folder, home, url, key }) {
    await writeJson(home, '.qwen/settings.json', {
      security: { auth: { selectedType: 'openai' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    });
    // It may miss what a command says in its last moment.
    const question = asking('run_shell_command', { command: `${SHELL}; sleep 1`, is_background: false });
    const args = [path.join(folder, 'node_modules/.bin/qwen'), '--yolo', question];
    return { args, env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: CLAUDE } };
  },
};

const continueCli: Client = {
  name: 'continue',
  does: 'its shell, over chats',
  npm: { '@continuedev/cli': '1.5.47' },
  async command({ folder, home, url, key }) {
    const model = { name: 'GPT', provider: 'openai', model: GPT, apiBase: `${url}/v1`, apiKey: key };
    // JSON is YAML.
    const config = await writeJson(home, 'config.yaml', {
      name: 'Proof',
      version: '1.0.0',
      schema: 'v1',
      models: [model],
    });
    const question = asking('Bash', { command: SHELL });
    const args = [path.join(folder, 'node_modules/.bin/cn'), '--config', config, '--auto', '-p', question];
    return { args, env: { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_CLI_DISABLE_COMMIT_SIGNATURE: '1' } };
  },
};

const cline: Client = {
  name: 'cline',
  does: 'its shell, over chats',
  npm: { cline: '3.0.65' },
  async command({ folder, url, key }) {
    const bin = path.join(folder, 'node_modules/.bin/cline');
    const question = asking('run_commands', { commands: [SHELL] });
    const auth = `"${bin}" auth -p openai -k "${key}" -b "${url}/v1" -m "${GPT}"`;
    return { args: ['sh', '-c', `${auth} && "${bin}" -P openai -m "${GPT}" "$0"`, question] };
  },
};

const SHELL_BY_PROGRAM = `text(await tools.exec_command({ cmd: '${SHELL}' }))`;
const MCP_BY_PROGRAM = "text(await tools.mcp__proof__weather({ city: 'Ur' }))";
const AS_IT_COMES = 'as it comes, with the model that it asks for by itself';
const WITH_CLAUDE = `model = "${CLAUDE}"\nmodel_reasoning_effort = "medium"\n`;
const BY_SERVER = asking('mcp__proof__weather', { city: 'Ur' });

export const AGENTS: readonly Client[] = [
  codex('codex', AS_IT_COMES, asking('functions__exec', SHELL_BY_PROGRAM)),
  codex(
    'codex-mcp',
    `${AS_IT_COMES}, and a server of tools (MCP)`,
    asking('functions__exec', MCP_BY_PROGRAM),
    MCP_SERVER,
  ),
  codex('codex-claude', 'with a model of Anthropic, which thinks', asking('exec_command', { cmd: SHELL }), WITH_CLAUDE),
  codex('codex-claude-mcp', 'the same, and a server of tools (MCP)', BY_SERVER, WITH_CLAUDE + MCP_SERVER),
  opencode,
  qwenCode,
  continueCli,
  cline,
];
