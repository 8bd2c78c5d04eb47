/** How much to reason, in words and in tokens. */
import type { Reasoning } from '#application';

type Word = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** Parts of the output limit, as OpenRouter takes them: https://openrouter.ai/docs/use-cases/reasoning-tokens */
const PARTS: Readonly<Record<Word, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};
/** Words that every model with efforts knows. */
const COMMON = ['low', 'medium', 'high'] as const;
/** What tokens are a part of where a request has no limit. */
const USUAL_LIMIT = 32_000;

/** The effort for reasoning settings: for tokens, the effort whose share of the limit is nearest; undefined for no settings. */
export function effortFor(settings: Reasoning, limit = USUAL_LIMIT): Word | 'none' | undefined {
  const { effort, max_tokens, enabled } = settings;
  if (enabled === false || max_tokens === 0) return 'none';
  if (max_tokens !== undefined) return nearest(max_tokens / limit);
  return effort ?? (enabled === true ? 'medium' : undefined);
}

/** Tokens for reasoning settings; undefined when there are none, or they switch reasoning off. */
export function budgetFor(settings: Reasoning, limit: number): number | undefined {
  const { max_tokens, enabled } = settings;
  if (max_tokens !== undefined && max_tokens > 0 && enabled !== false) return max_tokens;
  const word = effortFor(settings, limit);
  return word === undefined || word === 'none' ? undefined : PARTS[word] * limit;
}

function nearest(part: number): Word {
  return COMMON.reduce((best, word) => (Math.abs(PARTS[word] - part) < Math.abs(PARTS[best] - part) ? word : best));
}
