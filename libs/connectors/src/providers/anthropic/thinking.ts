/** Converts the caller's reasoning settings to Anthropic's thinking parameters. */

import type { Reasoning } from '#application';
import { type JsonObject } from '#kernel';
import { resolveBudgetTokens, resolveEffort } from '../chat/effort.ts';
import type { ChatRequestBody } from './body.ts';

/** Anthropic's smallest budget. */
const MIN_BUDGET_TOKENS = 1_024;
/**
 * Matches names such as `claude-opus-4-7`, with or without the date of a snapshot. Older names, such as
 * `claude-3-7-sonnet`, do not match.
 */
const VERSION = /^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?:-\d{8})?$/;
/** Models from this version on choose the length of their reasoning, and reject budgets and sampling parameters. */
const MIN_ADAPTIVE_VERSION = { major: 4, minor: 7 };

interface ThinkingContext {
  readonly maxTokens: number;
  /** Whether the model must call a tool, which Anthropic does not allow together with thinking. */
  readonly isToolForced: boolean;
  readonly messages: readonly { readonly role: string; readonly content: readonly { readonly type?: unknown }[] }[];
}

export interface Thinking {
  /** Undefined if the model must not or cannot think. */
  readonly thinking?: JsonObject;
  /** Sent in `output_config`. */
  readonly effort?: string;
}

/**
 * Whether a model has adaptive thinking instead of a budget:
 * https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
 */
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
  // The budget is part of the output limit and must leave tokens for the completion.
  if (requestedBudget === undefined || maxTokens <= MIN_BUDGET_TOKENS || isWithinToolUse(messages)) return {};
  const budget = Math.min(Math.max(Math.floor(requestedBudget), MIN_BUDGET_TOKENS), maxTokens - 1);
  return { thinking: { type: 'enabled', budget_tokens: budget, ...(hidden ? { display: 'omitted' } : {}) } };
}

/**
 * Returns how many thinking tokens a request to Anthropic permits. Without `thinking`, no model thinks.
 * @returns undefined if only the output limit limits them
 */
export function getThinkingLimit({ thinking }: JsonObject): number | undefined {
  if (thinking === undefined) return 0;
  return (thinking as { readonly budget_tokens?: number }).budget_tokens;
}

/** By default these models do not return their reasoning. Anthropic's lowest effort is `low`. */
function toAdaptiveThinking(settings: Reasoning, maxTokens: number, hidden: boolean): Thinking {
  const effort = resolveEffort(settings, maxTokens);
  if (effort === undefined || effort === 'none') return {};
  const thinking = { type: 'adaptive', display: hidden ? 'omitted' : 'summarized' };
  return { thinking, effort: effort === 'minimal' ? 'low' : effort };
}

/**
 * Whether the last turn has tool results but the turn before it has no thinking. Anthropic would reject such a request
 * with thinking enabled. Most clients do not store the thinking, so thinking is disabled instead.
 */
function isWithinToolUse(messages: ThinkingContext['messages']): boolean {
  const has = (at: number, ...types: string[]) =>
    messages.at(at)?.content.some(({ type }) => types.includes(String(type))) ?? false;
  return has(-1, 'tool_result') && !has(-2, 'thinking', 'redacted_thinking');
}
