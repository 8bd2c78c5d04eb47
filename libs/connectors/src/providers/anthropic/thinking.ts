/** How a model is to think, from the caller's reasoning settings. */

import type { Reasoning } from '#application';
import { type JsonObject } from '#kernel';
import { resolveBudgetTokens, resolveEffort } from '../chat/effort.ts';
import type { ChatRequestBody } from './body.ts';

/** Anthropic's smallest budget. */
const MIN_BUDGET_TOKENS = 1_024;
/** `claude-opus-4-7` and its dated snapshots; names of the former order have no version here, and are older. */
const VERSION = /^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?:-\d{8})?$/;
/** Models from this version on decide by themselves how long they think, and refuse budgets and sampling. */
const MIN_ADAPTIVE_VERSION = { major: 4, minor: 7 };

interface ThinkingContext {
  readonly maxTokens: number;
  /** Whether the model must call a tool: Anthropic does not let it think about that. */
  readonly isToolForced: boolean;
  readonly messages: readonly { readonly role: string; readonly content: readonly { readonly type?: unknown }[] }[];
}

export interface Thinking {
  /** Undefined where the model is not to think, or cannot. */
  readonly thinking?: JsonObject;
  /** For `output_config`. */
  readonly effort?: string;
}

/** https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking */
export function isAdaptive(model: unknown): boolean {
  const [, major, minor = '0'] = VERSION.exec(String(model)) ?? [];
  if (major === undefined) return false;
  return (
    Number(major) > MIN_ADAPTIVE_VERSION.major ||
    (Number(major) === MIN_ADAPTIVE_VERSION.major && Number(minor) >= MIN_ADAPTIVE_VERSION.minor)
  );
}

export function toThinking(body: ChatRequestBody, { maxTokens, isToolForced, messages }: ThinkingContext): Thinking {
  const settings: Reasoning = body.reasoning ?? {};
  if (isToolForced) return {};
  const hidden = settings.exclude === true;
  if (isAdaptive(body.model)) return toAdaptiveThinking(settings, maxTokens, hidden);
  const requestedBudget = resolveBudgetTokens(settings, maxTokens);
  // The budget is part of the limit, and must leave something for the answer.
  if (requestedBudget === undefined || maxTokens <= MIN_BUDGET_TOKENS || isWithinToolUse(messages)) return {};
  const budget = Math.min(Math.max(Math.floor(requestedBudget), MIN_BUDGET_TOKENS), maxTokens - 1);
  return { thinking: { type: 'enabled', budget_tokens: budget, ...(hidden ? { display: 'omitted' } : {}) } };
}

/** These models show nothing of their thoughts by themselves. Anthropic's scale begins at `low`. */
function toAdaptiveThinking(settings: Reasoning, maxTokens: number, hidden: boolean): Thinking {
  const effort = resolveEffort(settings, maxTokens);
  if (effort === undefined || effort === 'none') return {};
  const thinking = { type: 'adaptive', display: hidden ? 'omitted' : 'summarized' };
  return { thinking, effort: effort === 'minimal' ? 'low' : effort };
}

/**
 * A model that thinks wants its thoughts back with the results of its tools. Most clients do not keep them; then it goes
 * on without thinking, which is better than being refused.
 */
function isWithinToolUse(messages: ThinkingContext['messages']): boolean {
  const has = (at: number, ...types: string[]) =>
    messages.at(at)?.content.some(({ type }) => types.includes(String(type))) ?? false;
  return has(-1, 'tool_result') && !has(-2, 'thinking', 'redacted_thinking');
}
