// Claude Code through its SDK and the local proxy, with a private model and a prompt that requires its shell.
import assert from 'node:assert/strict';
import { query } from '@anthropic-ai/claude-agent-sdk';

const { GATEWAY_URL } = process.env;
const env = {
  ...process.env,
  ANTHROPIC_BASE_URL: GATEWAY_URL,
  // The proxy pays with its own API key.
  ANTHROPIC_API_KEY: 'none',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
};
const shell = { command: 'echo proof-$((6*7))', description: 'Says the proof' };
const prompt = `Run it. [[sandbox tool=Bash text=${JSON.stringify(JSON.stringify(shell))}]]`;

for (const model of ['private/gpt-oss-120b', 'claude-haiku-4-5']) {
  const options = {
    model,
    env,
    allowedTools: ['Bash'],
    permissionMode: 'dontAsk',
    stderr: (line) => process.stderr.write(line),
  };
  let result;
  for await (const message of query({ prompt, options })) if (message.type === 'result') result = message;
  assert.equal(result.subtype, 'success', JSON.stringify(result));
  assert.match(result.result, /^every coin/);
}
