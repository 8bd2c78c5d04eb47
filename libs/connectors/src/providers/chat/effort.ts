/** Converts reasoning settings between effort levels and token budgets. */
import type { Reasoning } from '#application';

type Effort = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** Shares of the output limit, as OpenRouter defines them: https://openrouter.ai/docs/use-cases/reasoning-tokens */
const EFFORT_SHARES: Readonly<Record<Effort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};
/** Effort levels that every model with efforts supports. */
const COMMON_EFFORTS = ['low', 'medium', 'high'] as const;
/** The output limit, in tokens, that is assumed for a request without one. */
const DEFAULT_LIMIT = 32_000;

/**
 * Returns the effort for reasoning settings. A token budget becomes the effort of `COMMON_EFFORTS` whose share of the
 * limit is nearest.
 * @returns undefined if the settings neither request nor disable reasoning
 */
export function resolveEffort(settings: Reasoning, limit = DEFAULT_LIMIT): Effort | 'none' | undefined {
  const { effort, max_tokens, enabled } = settings;
  if (enabled === false || max_tokens === 0) return 'none';
  if (max_tokens !== undefined) return findNearestEffort(max_tokens / limit);
  return effort ?? (enabled === true ? 'medium' : undefined);
}

/** Returns the token budget for reasoning settings; undefined if they do not request reasoning, or disable it. */
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
