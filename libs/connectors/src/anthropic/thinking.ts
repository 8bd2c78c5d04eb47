/** How long a model may think, from what OpenAI's and OpenRouter's clients say about it. */
import type { ChatRequestBody } from './body.ts';

/** Anthropic's smallest budget. */
const LEAST = 1_024;
/** Parts of the output limit, as OpenRouter takes them. */
const EFFORTS: Readonly<Record<string, number>> = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95 };

interface Circumstances {
  readonly maxTokens: number;
  /** Whether the model must call a tool: Anthropic does not let it think about that. */
  readonly forced: boolean;
  readonly messages: readonly { readonly role: string; readonly content: readonly { readonly type?: unknown }[] }[];
}

/** @returns undefined where the model is not to think, or cannot */
export function thinkingFor(body: ChatRequestBody, { maxTokens, forced, messages }: Circumstances) {
  const wanted = budgetOf(body, maxTokens);
  // The budget is part of the limit, and must leave something for the answer.
  if (wanted === undefined || maxTokens <= LEAST || forced || isAmidTools(messages)) return undefined;
  const budget = Math.min(Math.max(Math.floor(wanted), LEAST), maxTokens - 1);
  const hidden = body.reasoning?.exclude === true;
  return { type: 'enabled', budget_tokens: budget, ...(hidden ? { display: 'omitted' } : {}) };
}

function budgetOf({ reasoning_effort, reasoning }: ChatRequestBody, maxTokens: number): number | undefined {
  const { max_tokens, effort, enabled } = reasoning ?? {};
  if (typeof max_tokens === 'number') return max_tokens > 0 ? max_tokens : undefined;
  const word = reasoning_effort ?? effort ?? (enabled === true ? 'medium' : undefined);
  const part = EFFORTS[String(word)];
  return part === undefined ? undefined : part * maxTokens;
}

/**
 * A model that thinks wants its thoughts back with the results of its tools. Most clients do not keep them; then it goes
 * on without thinking, which is better than being refused.
 */
function isAmidTools(messages: Circumstances['messages']): boolean {
  const has = (at: number, ...types: string[]) =>
    messages.at(at)?.content.some(({ type }) => types.includes(String(type))) ?? false;
  return has(-1, 'tool_result') && !has(-2, 'thinking', 'redacted_thinking');
}
