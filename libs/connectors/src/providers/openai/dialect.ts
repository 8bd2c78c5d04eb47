/** Where vendors that speak OpenAI's chat completions differ. */
import type { Reasoning } from '#application';
import { resolveEffort } from '../chat/effort.ts';

/** How an upstream names a few parameters. Most that copy OpenAI know its former names. */
export interface Dialect {
  /**
   * The most output: OpenAI's former name, or its present one. Its models that reason refuse the former
   * (https://platform.openai.com/docs/api-reference/chat/create), and to Groq it is deprecated
   * (https://console.groq.com/docs/api-reference#chat-create).
   */
  readonly limit?: 'max_tokens' | 'max_completion_tokens';
  /** How much to reason: OpenAI's word, or OpenRouter's object (https://openrouter.ai/docs/api-reference/parameters). */
  readonly reasoning?: 'reasoning_effort' | 'reasoning';
  /** Fields of a message that it knows beside role, content and calls of tools; `cache_control` also of their parts. */
  readonly messages?: readonly string[];
}

/** OpenAI's own. */
export const OPENAI_DIALECT: Dialect = { limit: 'max_completion_tokens' };

type Body = Readonly<Record<string, unknown>>;

/**
 * A request with OpenAI's present name of the limit and OpenRouter's object for reasoning, in the words of an upstream;
 * itself, where nothing has to be said differently.
 */
export function toDialect(
  request: Body,
  { limit: limitField = 'max_tokens', reasoning: reasoningField = 'reasoning_effort' }: Dialect,
): Body {
  const body = withTextResults(request);
  const isLimitRenamed = body.max_completion_tokens !== undefined && limitField === 'max_tokens';
  const isReasoningRenamed = body.reasoning !== undefined && reasoningField === 'reasoning_effort';
  if (!isLimitRenamed && !isReasoningRenamed) return body;
  const { max_completion_tokens: limit, reasoning, ...rest } = body;
  return {
    ...rest,
    ...(limit === undefined ? {} : { [limitField]: limit }),
    ...(isReasoningRenamed
      ? toReasoningEffort(reasoning as Reasoning, limit as number | undefined)
      : reasoning
        ? { reasoning }
        : {}),
  };
}

/**
 * Tools answer with text alone in these chats (https://platform.openai.com/docs/api-reference/chat/create): what else they
 * have answered, an image or a file, the user shows behind the last of the answers that stand together.
 */
function withTextResults(body: Body): Body {
  const { messages } = body;
  if (!Array.isArray(messages) || !messages.some(hasNonTextResult)) return body;
  const converted: unknown[] = [];
  let pendingParts: Body[] = [];
  const flushParts = () => {
    if (pendingParts.length > 0) converted.push({ role: 'user', content: pendingParts });
    pendingParts = [];
  };
  for (const message of messages) {
    if (message?.role !== 'tool') flushParts();
    if (!hasNonTextResult(message)) {
      converted.push(message);
      continue;
    }
    const parts = message.content as readonly Body[];
    const texts = parts.flatMap(({ type, text }) => (type === 'text' ? [text] : []));
    converted.push({ ...message, content: [...texts, 'The rest of this result follows.'].join('\n') });
    pendingParts.push(
      { type: 'text', text: 'Of the result of the tool:' },
      ...parts.filter(({ type }) => type !== 'text'),
    );
  }
  flushParts();
  return { ...body, messages: converted };
}

function hasNonTextResult(message: Body | null): boolean {
  if (message?.role !== 'tool' || !Array.isArray(message.content)) return false;
  return message.content.some((part: Body | null) => part?.type !== 'text');
}

/** A request for a response, whose reasoning is OpenRouter's object with a `summary`, in OpenAI's words. */
export function toResponsesDialect(body: Body): Body {
  if (body.reasoning === undefined) return body;
  const { reasoning, ...rest } = body;
  const { summary, ...settings } = reasoning as Reasoning & { readonly summary?: unknown };
  const effort = toOpenAiEffort(settings, rest.max_output_tokens as number | undefined);
  const reasoningOptions = { ...(effort ? { effort } : {}), ...(summary ? { summary } : {}) };
  return Object.keys(reasoningOptions).length > 0 ? { ...rest, reasoning: reasoningOptions } : rest;
}

function toReasoningEffort(settings: Reasoning, limit: number | undefined): Body {
  const effort = toOpenAiEffort(settings, limit);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** OpenAI's scale ends at `xhigh`. */
function toOpenAiEffort(settings: Reasoning, limit: number | undefined): string | undefined {
  const effort = resolveEffort(settings, limit);
  return effort === 'max' ? 'xhigh' : effort;
}
