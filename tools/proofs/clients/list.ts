/** The tested clients with their versions. `npm run docs` writes them into docs/api.md. */
import { AGENTS } from './agents.ts';
import { type Client, createNodeClient, createPythonClient } from './client.ts';
import { COMPILED_CLIENTS } from './compiled.ts';
import { JVM_CLIENTS } from './jvm.ts';

const ZOD = { zod: '4.6.7' };
const CLAUDE_AGENT = { '@anthropic-ai/claude-agent-sdk': '0.3.330', ...ZOD };
const PYTHON_OPENAI = { openai: '3.57.0' };
const AI_SDK = { ai: '7.0.173', ...ZOD };
const OPENAI = 'chats and Responses, complete and streaming, tools that the client runs itself, embeddings';
const AI_SDK_CHATS = 'chats, complete and streaming with usage, tools, structured output, embeddings';
const MESSAGES = 'Messages, complete and streaming with usage, tools, structured output';
const LANGCHAIN = 'chats and Responses, complete and streaming with usage, tools, structured output, embeddings';

export const CLIENTS: readonly Client[] = [
  ...AGENTS,
  createNodeClient('openai-7', OPENAI, 'openai.mjs', { openai: '7.59.0', ...ZOD }),
  createNodeClient('openai-6', OPENAI, 'openai.mjs', { openai: '6.49.0', ...ZOD }),
  createNodeClient('openai-5', OPENAI, 'openai.mjs', { openai: '5.23.2', zod: '3.25.76' }),
  createNodeClient('openai-4', OPENAI, 'openai.mjs', { openai: '4.104.0', zod: '3.25.76' }),
  createNodeClient('openrouter', 'the streaming loop of its README, and a tool loop', 'openrouter.mjs', {
    '@openrouter/sdk': '1.3.19',
  }),
  createNodeClient('anthropic', 'Messages, complete and streaming, tools, token counting', 'anthropic.mjs', {
    '@anthropic-ai/sdk': '1.14.0',
  }),
  createNodeClient(
    'claude-agent-sdk',
    'Claude Code with its shell tool, with a model of Anthropic and one of another provider',
    'claude-agent.mjs',
    CLAUDE_AGENT,
  ),
  {
    ...createNodeClient(
      'claude-agent-private',
      'the same through the local proxy, with a private model under its own name and under a name of Claude',
      'claude-private.mjs',
      CLAUDE_AGENT,
    ),
    isPrivate: true,
  },
  createNodeClient(
    'ai-sdk',
    'chats and Responses, complete and streaming, functions, custom tools, structured output',
    'ai-sdk.mjs',
    {
      ai: '7.0.173',
      '@ai-sdk/openai': '4.0.118',
      ...ZOD,
    },
  ),
  createNodeClient(
    'openai-agents',
    'chats and Responses; functions, also in a namespace, of an MCP server, and with an image as result',
    'agents.mjs',
    {
      '@openai/agents': '0.20.0',
      openai: '7.59.0',
      ...ZOD,
    },
  ),
  createNodeClient('langchain-openai', LANGCHAIN, 'langchain-openai.mjs', {
    '@langchain/openai': '1.6.0',
    '@langchain/core': '1.4.0',
    ...ZOD,
  }),
  createNodeClient('langchain-openrouter', 'chats, complete with usage, streaming, tools', 'langchain-openrouter.mjs', {
    '@langchain/openrouter': '0.4.11',
    '@langchain/core': '1.4.0',
    ...ZOD,
  }),
  createPythonClient(
    'python-openai',
    'chats and Responses, the helpers `stream` and `parse`, embeddings',
    'py_openai.py',
    PYTHON_OPENAI,
  ),
  createPythonClient(
    'python-openai-async',
    'the asynchronous client: chats and Responses, complete and streaming, tools',
    'py_openai_async.py',
    PYTHON_OPENAI,
  ),
  createPythonClient('python-openrouter', 'chats, complete and streaming with usage, tools', 'py_openrouter.py', {
    openrouter: '1.3.84',
  }),
  createPythonClient('python-anthropic', 'Messages, sync and async, tools, token counting', 'py_anthropic.py', {
    anthropic: '2.14.0',
  }),
  createPythonClient('python-langchain-openai', LANGCHAIN, 'py_langchain.py', { 'langchain-openai': '1.7.4' }),
  createPythonClient('python-llama-index', 'chats, complete and streaming, tools', 'py_llama_index.py', {
    'llama-index-llms-openai-like': '0.8.1',
  }),
  createPythonClient(
    'python-instructor',
    'structured output with tools and with schemas, complete and partial',
    'py_instructor.py',
    {
      instructor: '1.17.0',
    },
  ),
  createPythonClient('python-litellm', 'chats, Responses, Messages, tools, embeddings', 'py_litellm.py', {
    litellm: '1.110.2',
    mcp: '2.3.0',
  }),
  createPythonClient('python-openai-agents', 'chats and Responses, functions, an MCP server', 'py_agents.py', {
    'openai-agents': '0.24.0',
  }),
  ...JVM_CLIENTS,
  ...COMPILED_CLIENTS,
  createNodeClient('ai-sdk-compatible', AI_SDK_CHATS, 'ai-sdk-compatible.mjs', {
    '@ai-sdk/openai-compatible': '3.0.92',
    ...AI_SDK,
  }),
  createNodeClient('ai-sdk-openrouter', AI_SDK_CHATS, 'ai-sdk-openrouter.mjs', {
    '@openrouter/ai-sdk-provider': '3.1.0',
    ...AI_SDK,
  }),
  createNodeClient('ai-sdk-anthropic', MESSAGES, 'ai-sdk-anthropic.mjs', { '@ai-sdk/anthropic': '4.0.105', ...AI_SDK }),
  createNodeClient('langchain-anthropic', MESSAGES, 'langchain-anthropic.mjs', {
    '@langchain/anthropic': '1.5.11',
    '@langchain/core': '1.4.0',
    ...ZOD,
  }),
  createNodeClient('ax', 'chats, complete and streaming with usage, tools, embeddings', 'ax.mjs', {
    '@ax-llm/ax': '24.0.21',
  }),
  createNodeClient('mastra', 'agents over chats, complete and streaming with usage, tools', 'mastra.mjs', {
    '@mastra/core': '1.71.0',
    ...ZOD,
  }),
  createNodeClient('tanstack-ai', 'chats and Responses, complete and streaming with usage, tools', 'tanstack.mjs', {
    '@tanstack/ai': '0.58.0',
    '@tanstack/ai-openai': '0.23.1',
    ...ZOD,
  }),
  createPythonClient(
    'python-pydantic-ai',
    'chats, Responses and Messages, complete and streaming with usage, tools, structured output',
    'py_pydantic_ai.py',
    {
      'pydantic-ai-slim': '2.68.0',
      anthropic: '2.14.0',
      ...PYTHON_OPENAI,
    },
  ),
  createPythonClient(
    'python-haystack',
    'chats and Responses, complete and streaming, tools of its agent, embeddings',
    'py_haystack.py',
    {
      'haystack-ai': '3.4.1',
      ...PYTHON_OPENAI,
    },
  ),
  createPythonClient(
    'python-agno',
    'agents over chats, complete and streaming, tools, structured output',
    'py_agno.py',
    {
      agno: '3.1.10',
      ...PYTHON_OPENAI,
    },
  ),
  createPythonClient(
    'python-strands',
    'agents over chats and Responses, complete and streaming, tools, structured output',
    'py_strands.py',
    {
      'strands-agents': '1.62.0',
      openai: '2.54.0',
    },
  ),
  createPythonClient('python-llm', 'chats and Responses, complete and streaming, tools, a schema', 'py_llm.py', {
    llm: '0.36',
  }),
  createPythonClient('python-langchain-anthropic', MESSAGES, 'py_langchain_anthropic.py', {
    'langchain-anthropic': '1.7.10',
  }),
];
