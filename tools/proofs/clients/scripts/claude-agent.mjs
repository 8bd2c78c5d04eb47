// Claude Code through its SDK, with a prompt that requires its shell.
import assert from 'node:assert/strict';
import { query } from '@anthropic-ai/claude-agent-sdk';

const { GATEWAY_URL, API_KEY } = process.env;
const env = {
  ...process.env,
  ANTHROPIC_BASE_URL: GATEWAY_URL,
  ANTHROPIC_API_KEY: API_KEY,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
};
const shell = { command: 'echo proof-$((6*7))', description: 'Says the proof' };
const prompt = `Run it. [[sandbox reasoning=20 tool=Bash text=${JSON.stringify(JSON.stringify(shell))}]]`;

for (const model of ['anthropic/claude-haiku-4.5', 'openai/gpt-5-mini']) {
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
