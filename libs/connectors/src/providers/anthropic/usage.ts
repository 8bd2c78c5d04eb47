import type { Usage } from '#domain';
import { parseTokenCount } from '../../http/parse-reported.ts';

interface AnthropicUsage {
  readonly input_tokens?: unknown;
  readonly output_tokens?: unknown;
  readonly cache_read_input_tokens?: unknown;
  readonly cache_creation_input_tokens?: unknown;
  readonly output_tokens_details?: { readonly thinking_tokens?: unknown } | null;
}

/**
 * Converts Anthropic's usage to disjoint units. `input_tokens` are those that were neither read from the cache nor
 * written to it; `output_tokens` include the thinking.
 * @returns undefined if no valid usage was reported; a reported zero is valid
 */
export function parseAnthropicUsage(reported: unknown): Usage | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined;
  const usage = reported as AnthropicUsage;
  const input = parseTokenCount(usage.input_tokens);
  const generated = parseTokenCount(usage.output_tokens);
  if (input === undefined || generated === undefined) return undefined;
  const reasoning = Math.min(parseTokenCount(usage.output_tokens_details?.thinking_tokens) ?? 0, generated);
  return {
    input,
    cacheRead: parseTokenCount(usage.cache_read_input_tokens) ?? 0,
    cacheWrite: parseTokenCount(usage.cache_creation_input_tokens) ?? 0,
    output: generated - reasoning,
    reasoning,
  };
}

/**
 * Merges the two usage reports of a stream: the input at its start, and cumulative totals at its end. The second report
 * may omit values that have not changed, or report them as null.
 */
export function mergeAnthropicUsage(atStart: unknown, atEnd: unknown): unknown {
  const reportedFields = Object.entries(atEnd ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return { ...(atStart as object | null | undefined), ...Object.fromEntries(reportedFields) };
}
