/** Differences between providers with OpenAI's chat completions. */
import type { ModelRules, Reasoning } from '#application';
import { selectEffort } from '../chat/effort.ts';

/** The parameter names and message fields of a provider. Most OpenAI-compatible providers support the defaults. */
export interface Dialect {
  /**
   * The output limit: OpenAI's former name or its current one. OpenAI's reasoning models reject the former
   * (https://platform.openai.com/docs/api-reference/chat/create), and Groq has deprecated it
   * (https://console.groq.com/docs/api-reference#chat-create).
   */
  readonly limit?: 'max_tokens' | 'max_completion_tokens';
  /**
   * The reasoning field: OpenAI's effort, or OpenRouter's object (https://openrouter.ai/docs/api-reference/parameters).
   */
  readonly reasoning?: 'reasoning_effort' | 'reasoning';
  /**
   * Supported fields of a message besides `role`, `content`, `tool_calls` and `tool_call_id`. `cache_control` applies
   * to parts and tools too.
   */
  readonly messages?: readonly string[];
  /**
   * The format of a web search by the model's own provider in a chat: OpenRouter's. Without it, a chat with such a search
   * is sent to OpenAI's Responses API.
   */
  readonly search?: 'openrouter';
  /** The role that messages of the developer are sent with; `developer` by default. */
  readonly developerRole?: 'system';
}

const DEVELOPER = 'developer';

/** The dialect of OpenAI itself. */
export const OPENAI_DIALECT: Dialect = { limit: 'max_completion_tokens' };

type Body = Readonly<Record<string, unknown>>;

/**
 * Translates a request to a provider's dialect. The request has OpenAI's current name of the output limit, and
 * OpenRouter's reasoning object. Returns the same object if nothing changes.
 */
export function toDialect(
  request: Body,
  { limit: limitField = 'max_tokens', reasoning: reasoningField = 'reasoning_effort', developerRole }: Dialect,
  modelRules: ModelRules = {},
): Body {
  const body = withTextResults(withDeveloperRole(request, developerRole));
  const isLimitRenamed = body.max_completion_tokens !== undefined && limitField === 'max_tokens';
  const isReasoningChanged =
    body.reasoning !== undefined && (reasoningField === 'reasoning_effort' || modelRules.efforts !== undefined);
  if (!isLimitRenamed && !isReasoningChanged) return body;
  const { max_completion_tokens: limit, reasoning, ...rest } = body;
  return {
    ...rest,
    ...(limit === undefined ? {} : { [limitField]: limit }),
    ...(reasoningField === 'reasoning_effort'
      ? toReasoningEffort(reasoning as Reasoning | undefined, modelRules, limit as number | undefined)
      : reasoning
        ? { reasoning: toSupportedReasoning(reasoning, modelRules) }
        : {}),
  };
}

/** Replaces the role `developer`, which OpenAI has introduced, for a provider that does not know it. */
function withDeveloperRole(body: Body, role = DEVELOPER): Body {
  const { messages } = body;
  if (role === DEVELOPER || !Array.isArray(messages) || !messages.some(isFromDeveloper)) return body;
  return {
    ...body,
    messages: messages.map((message) => (isFromDeveloper(message) ? { ...message, role } : message)),
  };
}

function isFromDeveloper(message: Body | null): boolean {
  return message?.role === DEVELOPER;
}

/**
 * Tool results can only contain text (https://platform.openai.com/docs/api-reference/chat/create). Images and files of
 * consecutive results are moved to a user message after the last of these results.
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

/** Converts the reasoning of a Responses request from OpenRouter's object with a `summary` to OpenAI's format. */
export function toResponsesDialect(body: Body, modelRules: ModelRules = {}): Body {
  if (body.reasoning === undefined) return body;
  const { reasoning, ...rest } = body;
  const { summary, ...settings } = reasoning as Reasoning & { readonly summary?: unknown };
  const effort = toOpenAiEffort(settings, modelRules, rest.max_output_tokens as number | undefined);
  const reasoningOptions = { ...(effort ? { effort } : {}), ...(summary ? { summary } : {}) };
  return Object.keys(reasoningOptions).length > 0 ? { ...rest, reasoning: reasoningOptions } : rest;
}

function toReasoningEffort(settings: Reasoning | undefined, modelRules: ModelRules, limit: number | undefined): Body {
  const effort = settings && toOpenAiEffort(settings, modelRules, limit);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/**
 * Returns how many reasoning tokens a request permits, before its translation to a dialect. OpenAI's effort does not
 * limit them, even if it was converted from a token budget.
 * @returns undefined if only the output limit limits them
 */
export function getReasoningLimit(
  { reasoning }: Body,
  dialect: Dialect,
  modelRules: ModelRules = {},
): number | undefined {
  const settings = (reasoning ?? {}) as Reasoning;
  if (selectEffort(settings, modelRules) === 'none') return 0;
  return dialect.reasoning === 'reasoning' ? settings.max_tokens : undefined;
}

/** The efforts of a model without rules: all that OpenAI's API had before `max`. */
const DEFAULT_EFFORTS: ModelRules = { efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] };

/** Returns the word for the effort that is sent: the provider's word, if it has its own. */
function toOpenAiEffort(settings: Reasoning, modelRules: ModelRules, limit: number | undefined): string | undefined {
  const effort = selectEffort(settings, modelRules.efforts ? modelRules : DEFAULT_EFFORTS, limit);
  return effort && (modelRules.effortNames?.[effort] ?? effort);
}

/** Replaces an effort that the model does not support in OpenRouter's object. A token budget is not changed. */
function toSupportedReasoning(settings: Reasoning, modelRules: ModelRules): Reasoning {
  const effort = selectEffort(settings, modelRules);
  if (modelRules.efforts === undefined || effort === undefined) return settings;
  const { exclude, max_tokens } = settings;
  if (max_tokens && settings.enabled !== false) return settings;
  return { effort, ...(exclude === undefined ? {} : { exclude }) };
}
