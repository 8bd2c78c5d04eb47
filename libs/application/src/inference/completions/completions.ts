/** Serves OpenAI's legacy completions through chats: https://platform.openai.com/docs/api-reference/completions */
import { type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

import type { ChatBody } from '../chat/chat-body.ts';
import { getChoices, type TranslateChunk, type TranslatedRequest } from './translate.ts';

/** A request for a legacy completion. The edge validates the types of most fields; the others are validated here. */
export interface CompletionBody {
  readonly model: string;
  readonly prompt: unknown;
  readonly n?: number | null;
  readonly stream?: boolean | null;
  readonly [field: string]: unknown;
}

/** Fields with the same meaning in legacy completions and chats. */
const SHARED_FIELDS = [
  'model',
  'models',
  'stream',
  'stream_options',
  'max_tokens',
  'n',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'reasoning',
  'reasoning_effort',
  'provider',
  'plugins',
] as const;

/**
 * Converts the request to a chat whose only message is the prompt.
 * @throws InvalidRequestError (400) naming the field that is invalid or not supported
 */
export function toChatRequest(body: CompletionBody): TranslatedRequest<ChatBody> {
  const { prompt, echo, suffix, logprobs, best_of, n } = body;
  if (echo) throw invalidRequest('echo is not supported', 'echo');
  if ((suffix ?? '') !== '') throw invalidRequest('suffix is not supported', 'suffix');
  if ((logprobs ?? false) !== false) throw invalidRequest('logprobs are not supported', 'logprobs');
  if (best_of !== undefined && best_of !== null && best_of !== (n ?? 1)) {
    throw invalidRequest('best_of must equal n; choosing the best of several completions is not supported', 'best_of');
  }
  const chat: Record<string, unknown> = { messages: [{ role: 'user', content: parsePrompt(prompt) }] };
  for (const field of SHARED_FIELDS) if (body[field] !== undefined && body[field] !== null) chat[field] = body[field];
  return { body: chat as ChatBody, translate: toCompletion };
}

function parsePrompt(prompt: unknown): string {
  const [only = '', ...otherPrompts] = Array.isArray(prompt) ? prompt : [prompt];
  if (typeof only === 'string' && only !== '' && otherPrompts.length === 0) return only;
  throw invalidRequest(
    'prompt must be a string or an array of one string; tokens and several prompts are not supported',
    'prompt',
  );
}

const toCompletion: TranslateChunk = (completion) => {
  const choices = getChoices(completion).map(({ index, message, delta, finish_reason }) => ({
    text: getText((message ?? delta ?? {}) as JsonObject),
    index,
    logprobs: null,
    finish_reason: finish_reason ?? null,
  }));
  return { ...completion, object: 'text_completion', choices };
};

function getText({ content, refusal: refusalText }: JsonObject): string {
  return [content, refusalText].filter((text) => typeof text === 'string').join('');
}
