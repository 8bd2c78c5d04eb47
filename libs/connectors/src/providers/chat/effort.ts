/** How much to reason, in words and in tokens. */
import type { Reasoning } from '#application';

type Effort = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** Parts of the output limit, as OpenRouter takes them: https://openrouter.ai/docs/use-cases/reasoning-tokens */
const EFFORT_SHARES: Readonly<Record<Effort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};
/** Words that every model with efforts knows. */
const COMMON_EFFORTS = ['low', 'medium', 'high'] as const;
/** What tokens are a part of where a request has no limit. */
const DEFAULT_LIMIT = 32_000;

/** The effort for reasoning settings: for tokens, the effort whose share of the limit is nearest; undefined for no settings. */
export function resolveEffort(settings: Reasoning, limit = DEFAULT_LIMIT): Effort | 'none' | undefined {
  const { effort, max_tokens, enabled } = settings;
  if (enabled === false || max_tokens === 0) return 'none';
  if (max_tokens !== undefined) return findNearestEffort(max_tokens / limit);
  return effort ?? (enabled === true ? 'medium' : undefined);
}

/** Tokens for reasoning settings; undefined when there are none, or they switch reasoning off. */
export function resolveBudgetTokens(settings: Reasoning, limit: number): number | undefined {
  const { max_tokens, enabled } = settings;
  if (max_tokens !== undefined && max_tokens > 0 && enabled !== false) return max_tokens;
  const resolvedEffort = resolveEffort(settings, limit);
  return resolvedEffort === undefined || resolvedEffort === 'none' ? undefined : EFFORT_SHARES[resolvedEffort] * limit;
}

function findNearestEffort(share: number): Effort {
  return COMMON_EFFORTS.reduce((best, effort) =>
    Math.abs(EFFORT_SHARES[effort] - share) < Math.abs(EFFORT_SHARES[best] - share) ? effort : best,
  );
}
