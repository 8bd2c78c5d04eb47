/** Further libraries: frameworks for agents, and clients for the APIs of OpenAI, Anthropic and OpenRouter. */
import { type Client, createNodeClient, createPythonClient } from './client.ts';

const AI_SDK = { ai: '7.0.173', zod: '4.6.7' };
const PYTHON_OPENAI = { openai: '3.57.0' };
const AI_SDK_CHATS = 'chats, complete and streaming with usage, tools, structured output, embeddings';
const MESSAGES = 'Messages, complete and streaming with usage, tools, structured output';

export const FURTHER_CLIENTS: readonly Client[] = [
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
    zod: '4.6.7',
  }),
  createNodeClient('ax', 'chats, complete and streaming with usage, tools, embeddings', 'ax.mjs', {
    '@ax-llm/ax': '24.0.21',
  }),
  createNodeClient('mastra', 'agents over chats, complete and streaming with usage, tools', 'mastra.mjs', {
    '@mastra/core': '1.71.0',
    zod: '4.6.7',
  }),
  createNodeClient('tanstack-ai', 'chats and Responses, complete and streaming with usage, tools', 'tanstack.mjs', {
    '@tanstack/ai': '0.58.0',
    '@tanstack/ai-openai': '0.23.1',
    zod: '4.6.7',
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
