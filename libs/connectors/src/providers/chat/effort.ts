/** Converts reasoning settings between effort levels and token budgets. */
import { disablesReasoning, type ModelRules, type Reasoning } from '#application';

/** An effort with which a model reasons. */
type ReasoningEffort = Exclude<NonNullable<Reasoning['effort']>, 'none'>;
type Effort = ReasoningEffort | 'none';

/** Shares of the output limit, as OpenRouter defines them: https://openrouter.ai/docs/use-cases/reasoning-tokens */
const EFFORT_SHARES: Readonly<Record<ReasoningEffort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};
/** The efforts in ascending order, in which `EFFORT_SHARES` lists them. */
const ASCENDING = Object.keys(EFFORT_SHARES) as readonly ReasoningEffort[];
/** Effort levels that every model with efforts supports. */
const COMMON_EFFORTS = ['low', 'medium', 'high'] as const;
/** The output limit, in tokens, that is assumed for a request without one. */
const DEFAULT_LIMIT = 32_000;

/**
 * Returns the effort for reasoning settings. A token budget becomes the effort of `COMMON_EFFORTS` whose share of the
 * limit is nearest.
 * @returns undefined if the settings neither request nor disable reasoning
 */
export function resolveEffort(settings: Reasoning, limit = DEFAULT_LIMIT): Effort | undefined {
  if (disablesReasoning(settings)) return 'none';
  const { effort, max_tokens, enabled } = settings;
  if (max_tokens !== undefined) return findNearestShare(max_tokens / limit);
  return effort ?? (enabled === true ? 'medium' : undefined);
}

/**
 * Returns the effort that the model supports and that is nearest to the one of the settings. Of two that are equally
 * near, it is the lower one. Requested reasoning is not disabled: then the result is never `none`.
 * @param efforts undefined if the model supports all
 * @returns undefined if the settings neither request nor disable reasoning
 */
export function selectEffort(
  settings: Reasoning,
  { efforts }: Pick<ModelRules, 'efforts'>,
  limit?: number,
): Effort | undefined {
  const requested = resolveEffort(settings, limit);
  if (requested === undefined || efforts === undefined || efforts.includes(requested)) return requested;
  const target = requested === 'none' ? 0 : ASCENDING.indexOf(requested);
  const distance = (effort: ReasoningEffort) => Math.abs(ASCENDING.indexOf(effort) - target);
  const supported = ASCENDING.filter((effort) => efforts.includes(effort));
  return supported.reduce((best, effort) => (distance(effort) < distance(best) ? effort : best));
}

/** Returns the token budget for reasoning settings; undefined if they do not request reasoning, or disable it. */
export function resolveBudgetTokens(settings: Reasoning, limit: number): number | undefined {
  const { max_tokens, enabled } = settings;
  if (max_tokens !== undefined && max_tokens > 0 && enabled !== false) return max_tokens;
  const resolvedEffort = resolveEffort(settings, limit);
  return resolvedEffort === undefined || resolvedEffort === 'none' ? undefined : EFFORT_SHARES[resolvedEffort] * limit;
}

function findNearestShare(share: number): ReasoningEffort {
  return COMMON_EFFORTS.reduce((best, effort) =>
    Math.abs(EFFORT_SHARES[effort] - share) < Math.abs(EFFORT_SHARES[best] - share) ? effort : best,
  );
}
