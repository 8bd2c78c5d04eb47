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
 * Anthropic's usage as disjoint classes: there `input_tokens` are those that were neither read from the cache nor
 * written to it, while `output_tokens` include the thinking. An explicit zero is a value; undefined means that nothing
 * usable was reported.
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
 * The usage of a stream, which is reported twice: all of the input at its start, and everything that is known at its end,
 * in sums that run on. The end may leave out what has not changed, also by a null.
 */
export function mergeAnthropicUsage(atStart: unknown, atEnd: unknown): unknown {
  const reportedFields = Object.entries(atEnd ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return { ...(atStart as object | null | undefined), ...Object.fromEntries(reportedFields) };
}
