/** Who is tried, in which versions. */
import { AGENTS } from './agents.ts';
import { type Client, node, python } from './client.ts';

export const CLIENTS: readonly Client[] = [
  ...AGENTS,
  node('openai-7', 'openai.mjs', { openai: '7.57.0', zod: '4.6.7' }),
  node('openai-6', 'openai.mjs', { openai: '6.49.0', zod: '4.6.7' }),
  node('openai-5', 'openai.mjs', { openai: '5.23.2', zod: '3.25.76' }),
  node('openai-4', 'openai.mjs', { openai: '4.104.0', zod: '3.25.76' }),
  node('openrouter', 'openrouter.mjs', { '@openrouter/sdk': '1.3.19' }),
  node('anthropic', 'anthropic.mjs', { '@anthropic-ai/sdk': '1.12.0' }),
  node('claude-agent-sdk', 'claude-agent.mjs', { '@anthropic-ai/claude-agent-sdk': '0.3.330', zod: '4.6.7' }),
  node('ai-sdk', 'ai-sdk.mjs', { ai: '7.0.173', '@ai-sdk/openai': '4.0.118', zod: '4.6.7' }),
  node('openai-agents', 'agents.mjs', { '@openai/agents': '0.20.0', openai: '7.57.0', zod: '4.6.7' }),
  node('langchain-openai', 'langchain-openai.mjs', {
    '@langchain/openai': '1.6.0',
    '@langchain/core': '1.4.0',
    zod: '4.6.7',
  }),
  node('langchain-openrouter', 'langchain-openrouter.mjs', {
    '@langchain/openrouter': '0.4.11',
    '@langchain/core': '1.4.0',
    zod: '4.6.7',
  }),
  python('python-openai', 'py_openai.py', { openai: '3.54.0' }),
  python('python-anthropic', 'py_anthropic.py', { anthropic: '2.12.0' }),
  python('python-langchain-openai', 'py_langchain.py', { 'langchain-openai': '1.7.3' }),
  python('python-llama-index', 'py_llama_index.py', { 'llama-index-llms-openai-like': '0.8.1' }),
  python('python-instructor', 'py_instructor.py', { instructor: '1.17.0' }),
  python('python-litellm', 'py_litellm.py', { litellm: '1.106.2', mcp: '2.3.0' }),
  python('python-openai-agents', 'py_agents.py', { 'openai-agents': '0.24.0' }),
];
