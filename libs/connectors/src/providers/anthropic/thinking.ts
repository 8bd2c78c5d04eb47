/** Converts the caller's reasoning settings to Anthropic's thinking parameters. */

import { disablesReasoning, type ModelRules, type Reasoning } from '#application';
import { type JsonObject } from '#kernel';
import { resolveBudgetTokens, selectEffort } from '../chat/effort.ts';
import type { ChatRequestBody } from './body.ts';

/** Anthropic's smallest budget. */
const MIN_BUDGET_TOKENS = 1_024;

interface ThinkingContext {
  readonly modelRules: ModelRules;
  readonly maxTokens: number;
  /** Whether the model must call a tool, which Anthropic does not allow together with thinking. */
  readonly isToolForced: boolean;
  readonly messages: readonly { readonly role: string; readonly content: readonly { readonly type?: unknown }[] }[];
}

export interface Thinking {
  /** Undefined if nothing is sent: then the default of the model applies. */
  readonly thinking?: JsonObject;
  /** Sent in `output_config`. */
  readonly effort?: string;
}

/**
 * Whether the models with these rules have adaptive thinking, whose length they choose by an effort. They support no
 * sampling parameters: https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
 */
export function isAdaptive({ thinking }: ModelRules): boolean {
  return thinking === 'adaptive';
}

export function toThinking(body: ChatRequestBody, context: ThinkingContext): Thinking {
  const { modelRules, maxTokens, isToolForced, messages } = context;
  const settings: Reasoning = body.reasoning ?? {};
  const hidden = settings.exclude === true;
  if (isToolForced) return createThinkingOff(modelRules);
  if (isAdaptive(modelRules)) return toAdaptiveThinking(settings, context, hidden);
  const requestedBudget = resolveBudgetTokens(settings, maxTokens);
  // The budget is part of the output limit and must leave tokens for the completion.
  if (requestedBudget === undefined || maxTokens <= MIN_BUDGET_TOKENS || isWithinToolUse(messages)) return {};
  const budget = Math.min(Math.max(Math.floor(requestedBudget), MIN_BUDGET_TOKENS), maxTokens - 1);
  return { thinking: { type: 'enabled', budget_tokens: budget, ...(hidden ? { display: 'omitted' } : {}) } };
}

/** The beta that has `thinking.block_binding`. */
export const BLOCK_BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/**
 * For a model whose blocks of thinking are bound to their conversation, which a caller may change, lets Anthropic drop
 * blocks that no longer fit. The field does not exist for a model that must not think, so it gets no blocks. Anthropic
 * drops blocks of other models by itself: https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
 * @param thinking the field of the request
 */
export function bindThinking(
  thinking: JsonObject | undefined,
  { preservedThinking, ...modelRules }: ModelRules,
): { readonly thinking?: JsonObject | undefined; readonly acceptsBlocks: boolean } {
  if (!preservedThinking) return { thinking, acceptsBlocks: true };
  const { type } = thinking ?? { type: thinksByDefault(modelRules) ? 'adaptive' : undefined };
  if (type !== 'adaptive') return { thinking, acceptsBlocks: false };
  const block_binding = { prefix_mismatch_behavior: 'drop_block' };
  return { thinking: { ...thinking, type, block_binding }, acceptsBlocks: true };
}

/** Whether the model may think in response to a request with this field `thinking`. */
export function canThink(thinking: unknown, modelRules: ModelRules): boolean {
  if (thinking === undefined) return thinksByDefault(modelRules);
  return (thinking as JsonObject).type !== 'disabled';
}

/**
 * Returns how many thinking tokens a request to Anthropic permits.
 * @returns undefined if only the output limit limits them
 */
export function getThinkingLimit({ thinking }: JsonObject, modelRules: ModelRules): number | undefined {
  if (!canThink(thinking, modelRules)) return 0;
  return (thinking as { readonly budget_tokens?: number } | undefined)?.budget_tokens;
}

/**
 * By default these models do not return their reasoning. One that cannot stop thinking gets its lowest effort, and does
 * not return its reasoning, if the caller disables reasoning.
 */
function toAdaptiveThinking(
  settings: Reasoning,
  { modelRules, maxTokens }: ThinkingContext,
  hidden: boolean,
): Thinking {
  const effort = selectEffort(settings, modelRules, maxTokens);
  if (effort === undefined) return {};
  if (effort === 'none') return createThinkingOff(modelRules);
  return {
    thinking: { type: 'adaptive', display: hidden || disablesReasoning(settings) ? 'omitted' : 'summarized' },
    effort,
  };
}

/** No effort is sent: thinking can be disabled only up to the effort `high`, and the default is not above it. */
function createThinkingOff({ thinkingOff = 'omitted' }: ModelRules): Thinking {
  return thinkingOff === 'omitted' ? {} : { thinking: { type: thinkingOff } };
}

function thinksByDefault({ thinkingOff = 'omitted', efforts }: ModelRules): boolean {
  return thinkingOff !== 'omitted' || (efforts !== undefined && !efforts.includes('none'));
}

/**
 * Whether the last turn has tool results but the turn before it has no thinking. Anthropic would reject such a request
 * with a thinking budget. Most clients do not store the thinking, so thinking is disabled instead.
 */
function isWithinToolUse(messages: ThinkingContext['messages']): boolean {
  const has = (at: number, ...types: string[]) =>
    messages.at(at)?.content.some(({ type }) => types.includes(String(type))) ?? false;
  return has(-1, 'tool_result') && !has(-2, 'thinking', 'redacted_thinking');
}
