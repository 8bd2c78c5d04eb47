/** How a model is to think, from the caller's reasoning settings. */
import type { Reasoning } from '#application';
import { budgetFor, effortFor } from '../chat/effort.ts';
import type { ChatRequestBody, JsonObject } from './body.ts';

/** Anthropic's smallest budget. */
const LEAST = 1_024;
/** `claude-opus-4-7` and its dated snapshots; names of the former order have no version here, and are older. */
const VERSION = /^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?:-\d{8})?$/;
/** Models from this version on decide by themselves how long they think, and refuse budgets and sampling. */
const ADAPTIVE = { major: 4, minor: 7 };

interface Circumstances {
  readonly maxTokens: number;
  /** Whether the model must call a tool: Anthropic does not let it think about that. */
  readonly forced: boolean;
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
  return Number(major) > ADAPTIVE.major || (Number(major) === ADAPTIVE.major && Number(minor) >= ADAPTIVE.minor);
}

export function thinkingFor(body: ChatRequestBody, { maxTokens, forced, messages }: Circumstances): Thinking {
  const settings: Reasoning = body.reasoning ?? {};
  if (forced) return {};
  const hidden = settings.exclude === true;
  if (isAdaptive(body.model)) return adaptive(settings, maxTokens, hidden);
  const wanted = budgetFor(settings, maxTokens);
  // The budget is part of the limit, and must leave something for the answer.
  if (wanted === undefined || maxTokens <= LEAST || isAmidTools(messages)) return {};
  const budget = Math.min(Math.max(Math.floor(wanted), LEAST), maxTokens - 1);
  return { thinking: { type: 'enabled', budget_tokens: budget, ...(hidden ? { display: 'omitted' } : {}) } };
}

/** These models show nothing of their thoughts by themselves. Anthropic's scale begins at `low`. */
function adaptive(settings: Reasoning, maxTokens: number, hidden: boolean): Thinking {
  const word = effortFor(settings, maxTokens);
  if (word === undefined || word === 'none') return {};
  const thinking = { type: 'adaptive', display: hidden ? 'omitted' : 'summarized' };
  return { thinking, effort: word === 'minimal' ? 'low' : word };
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
