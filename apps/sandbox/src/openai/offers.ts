/** The models for OpenAI's chat completions API. Their prices are independent of the gateway's catalogue. */
import type { PriceInUsd } from '../provider/model.ts';

export interface ModelOffer {
  /** The model name in responses. OpenAI responds to an alias with the name of its dated snapshot. */
  readonly snapshot: string;
  readonly context: number;
  readonly maxOutput: number;
  /** Models that reason reject `max_tokens`; the others reject `reasoning_effort`. */
  readonly reasons: boolean;
  /** The supported efforts, if they are not those of its generation. An open model with efforts always reasons. */
  readonly efforts?: readonly string[];
  /** The model accepts sampling parameters and log probabilities with the effort `none`. */
  readonly samples?: boolean;
  /** The model is available in Responses and not in chats. */
  readonly responsesOnly?: boolean;
  /** The model does not accept images. */
  readonly textOnly?: boolean;
  readonly fingerprint: string | null;
  readonly usd: PriceInUsd;
}

export type Offers = Readonly<Record<string, ModelOffer>>;

/**
 * Defines a model whose snapshot has the same name. The limits of context and output are in tokens. The prices of
 * input, cached input and output are in USD per million tokens.
 */
function defineModel(
  snapshot: string,
  [context, maxOutput]: readonly [number, number],
  [input, cachedInput, output]: readonly [string, string, string],
  options: Partial<Pick<ModelOffer, 'reasons' | 'efforts' | 'samples' | 'responsesOnly' | 'textOnly'>> & {
    readonly request?: string;
  } = {},
): Offers {
  const { reasons = false, samples = false, efforts, responsesOnly = false, textOnly = false, request = '0' } = options;
  const usd = { input, cachedInput, output, request };
  const abilities = { reasons, samples, ...(efforts ? { efforts } : {}), responsesOnly, textOnly };
  return { [snapshot]: { snapshot, context, maxOutput, ...abilities, fingerprint: null, usd } };
}

const TEXT = { textOnly: true };
const GPT_OSS = { ...TEXT, efforts: ['low', 'medium', 'high'] };
/** OpenRouter accepts any effort for a model that always reasons. */
const REASONING = { efforts: ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] };
const GPT_6 = { reasons: true, samples: true, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] };
const GPT_6_REASONING = { ...GPT_6, efforts: GPT_6.efforts.slice(1) };
const FREE = ['0', '0', '0'] as const;

export const OPENAI: Offers = {
  'gpt-5-mini': {
    snapshot: 'gpt-5-mini-2025-08-07',
    context: 400_000,
    maxOutput: 128_000,
    reasons: true,
    fingerprint: null,
    usd: { input: '0.25', cachedInput: '0.025', output: '2', request: '0' },
  },
  'gpt-5.4-mini': {
    snapshot: 'gpt-5.4-mini-2026-03-17',
    context: 400_000,
    maxOutput: 128_000,
    reasons: true,
    fingerprint: null,
    usd: { input: '0.75', cachedInput: '0.075', output: '4.5', request: '0' },
  },
  'gpt-4o-mini': {
    snapshot: 'gpt-4o-mini-2024-07-18',
    context: 128_000,
    maxOutput: 16_384,
    reasons: false,
    fingerprint: 'fp_5a4db0c5d1',
    usd: { input: '0.15', cachedInput: '0.075', output: '0.6', request: '0' },
  },
  flat: {
    snapshot: 'flat',
    context: 32_000,
    maxOutput: 4_096,
    reasons: false,
    textOnly: true,
    fingerprint: 'fp_5a4db0c5d1',
    usd: { input: '0', cachedInput: '0', output: '0', request: '0.01' },
  },
  ...defineModel('gpt-6-sol', [1050000, 128000], ['2', '0.2', '10'], GPT_6),
  ...defineModel('gpt-6.1-sol', [1050000, 128000], ['2', '0.1', '10'], GPT_6_REASONING),
  ...defineModel('gpt-6.2-sol', [1050000, 128000], ['2', '0.1', '10'], { ...GPT_6_REASONING, responsesOnly: true }),
  ...defineModel('gpt-6-astra', [1050000, 128000], ['10', '1', '50'], { ...GPT_6_REASONING, responsesOnly: true }),
  ...defineModel('gpt-6.1-terra', [1050000, 128000], ['1', '0.05', '5'], { ...GPT_6, responsesOnly: true }),
  ...defineModel('gpt-6-luna', [1050000, 128000], ['0.1', '0.01', '0.5'], { ...GPT_6, responsesOnly: true }),
  ...defineModel('gpt-5.6-sol', [1050000, 128000], ['4', '0.4', '20'], {
    ...GPT_6,
    samples: false,
    responsesOnly: true,
  }),
  ...defineModel('gpt-5.6-terra', [1050000, 128000], ['2', '0.2', '12'], {
    ...GPT_6,
    samples: false,
    responsesOnly: true,
  }),
  ...defineModel('gpt-5.6-luna', [1050000, 128000], ['0.2', '0.02', '1.2'], {
    ...GPT_6,
    samples: false,
    responsesOnly: true,
  }),
  ...defineModel('gpt-5.5', [1050000, 128000], ['5', '0.5', '30'], { reasons: true }),
  ...defineModel('gpt-5.4', [1050000, 128000], ['2.5', '0.25', '15'], { reasons: true }),
  ...defineModel('gpt-5.4-nano', [400000, 128000], ['0.2', '0.02', '1.25'], { reasons: true }),
  ...defineModel('gpt-5.1', [400000, 128000], ['1.25', '0.125', '10'], { reasons: true }),
  ...defineModel('gpt-5', [400000, 128000], ['1.25', '0.125', '10'], { reasons: true }),
  ...defineModel('gpt-5-codex', [400000, 128000], ['1.25', '0.125', '10'], { reasons: true, responsesOnly: true }),
  ...defineModel('gpt-5-nano', [400000, 128000], ['0.05', '0.005', '0.4'], { reasons: true }),
  ...defineModel('gpt-4.1', [1047576, 32768], ['2', '0.5', '8']),
  ...defineModel('gpt-4.1-mini', [1047576, 32768], ['0.4', '0.1', '1.6']),
  ...defineModel('gpt-4o', [128000, 16384], ['2.5', '1.25', '10']),
  ...defineModel('o3', [200000, 100000], ['2', '0.5', '8'], { reasons: true }),
};

export const OPENROUTER: Offers = {
  ...defineModel('google/gemini-2.5-pro', [1048576, 65536], ['1.25', '0.125', '10'], REASONING),
  ...defineModel('google/gemini-2.5-flash', [1048576, 65536], ['0.3', '0.03', '2.5']),
  ...defineModel('google/gemini-2.5-flash-lite', [1048576, 65536], ['0.1', '0.01', '0.4']),
  ...defineModel('deepseek/deepseek-chat-v3.1', [131072, 32768], ['0.21', '0.07', '0.79'], TEXT),
  ...defineModel('deepseek/deepseek-r1-0528', [131072, 32768], ['0.5', '0.14', '2.15'], { ...TEXT, ...REASONING }),
  ...defineModel('mistralai/mistral-large-2512', [262144, 32768], ['0.5', '0.05', '1.5']),
  ...defineModel('google/gemini-3.8-flash', [1048576, 65536], ['0.75', '0.075', '3.75']),
  ...defineModel('google/gemini-3.5-flash-lite', [1048576, 65536], ['0.3', '0.03', '2.5']),
  ...defineModel('google/gemini-3.1-pro-preview', [1048576, 65536], ['2', '0.2', '12']),
  ...defineModel('moonshotai/kimi-k3', [1048576, 65536], ['3', '0.3', '15'], TEXT),
  ...defineModel('deepseek/deepseek-v4.1-flash', [1048576, 131072], ['0.21', '0.0042', '0.84'], TEXT),
  ...defineModel('deepseek/deepseek-v4-pro-0813', [1048576, 65536], ['0.66', '0.022', '1.98'], TEXT),
  ...defineModel('z-ai/glm-5.2', [1048576, 65536], ['1.4', '0.26', '4.4'], TEXT),
  ...defineModel('x-ai/grok-4.7', [500000, 65536], ['2', '0.5', '6']),
  ...defineModel('x-ai/grok-4.3', [1000000, 65536], ['1.25', '0.2', '2.5']),
  ...defineModel('perplexity/sonar', [127072, 8192], ['1', '1', '1'], { request: '0.005' }),
  ...defineModel('openai/gpt-oss-20b:free', [131072, 32768], FREE, GPT_OSS),
  ...defineModel('z-ai/glm-4.5-air:free', [131072, 32768], FREE, TEXT),
  ...defineModel('meta-llama/llama-3.3-70b-instruct:free', [65536, 16384], FREE, TEXT),
  ...defineModel('perplexity/sonar-pro', [200000, 8192], ['3', '3', '15'], { request: '0.006' }),
};

export const GROQ: Offers = {
  ...defineModel('openai/gpt-oss-120b', [131072, 32768], ['0.15', '0.075', '0.6'], GPT_OSS),
  ...defineModel('openai/gpt-oss-20b', [131072, 32768], ['0.075', '0.0375', '0.3'], GPT_OSS),
  ...defineModel('qwen/qwen3.8-27b', [131072, 16384], ['0.8', '0.8', '4'], {
    ...TEXT,
    efforts: ['none', 'default'],
  }),
  ...defineModel('moonshotai/kimi-k2-instruct-0905', [131072, 16384], ['1', '0.5', '3'], TEXT),
};

export const DEEPINFRA: Offers = {
  ...defineModel('meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8', [1048576, 8192], ['0.15', '0.15', '0.6']),
  ...defineModel('meta-llama/Llama-4-Scout-17B-16E-Instruct', [131072, 8192], ['0.1', '0.1', '0.3']),
  ...defineModel('openai/gpt-oss-120b', [131072, 32768], ['0.039', '0.039', '0.17'], GPT_OSS),
  ...defineModel('openai/gpt-oss-20b', [131072, 32768], ['0.03', '0.03', '0.14'], GPT_OSS),
  ...defineModel('meta-llama/Llama-3.3-70B-Instruct-Turbo', [131072, 32768], ['0.1', '0.1', '0.32'], TEXT),
  ...defineModel('meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo', [131072, 16384], ['0.02', '0.02', '0.04'], TEXT),
  ...defineModel('Qwen/Qwen3-Coder-480B-A35B-Instruct-Turbo', [262144, 65536], ['0.3', '0.1', '1'], TEXT),
  ...defineModel('moonshotai/Kimi-K2-Instruct-0905', [131072, 16384], ['0.5', '0.5', '2'], TEXT),
  ...defineModel('Qwen/Qwen3-32B', [40960, 16384], ['0.1', '0.1', '0.3'], TEXT),
  ...defineModel('Qwen/Qwen3-235B-A22B-Instruct-2507', [131072, 16384], ['0.09', '0.09', '0.55'], TEXT),
  ...defineModel('Qwen/Qwen3-235B-A22B-Thinking-2507', [131072, 32768], ['0.3', '0.3', '2.9'], TEXT),
  ...defineModel('deepseek-ai/DeepSeek-V3.1', [131072, 32768], ['0.27', '0.27', '1'], TEXT),
  ...defineModel('deepseek-ai/DeepSeek-R1-0528', [131072, 32768], ['0.5', '0.5', '2.15'], TEXT),
  ...defineModel('mistralai/Mistral-Small-3.2-24B-Instruct-2506', [128000, 16384], ['0.075', '0.075', '0.2']),
  ...defineModel('zai-org/GLM-4.6', [202752, 65536], ['0.45', '0.45', '1.9'], TEXT),
};

/** Each model runs in its own enclave. */
export const TINFOIL: Offers = {
  ...defineModel('gpt-oss-120b', [131072, 32768], ['0.75', '0.75', '1.25'], TEXT),
  ...defineModel('llama3-3-70b', [131072, 16384], ['1.75', '1.75', '2.75'], TEXT),
  ...defineModel('gemma4-31b', [262144, 32768], ['0.4', '0.4', '1'], TEXT),
  ...defineModel('kimi-k3', [262144, 65536], ['4', '4', '20'], TEXT),
};
