import type { Usage } from '#domain';
import { parseTokenCount } from '../../http/parse-reported.ts';

interface OpenAiUsage {
  readonly prompt_tokens?: unknown;
  readonly completion_tokens?: unknown;
  readonly prompt_tokens_details?: { readonly cached_tokens?: unknown; readonly cache_write_tokens?: unknown } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: unknown } | null;
  /** DeepSeek's name of OpenAI's `cached_tokens`. */
  readonly prompt_cache_hit_tokens?: unknown;
}

/**
 * Converts OpenAI's usage to disjoint units. `prompt_tokens` include cache reads and cache writes; `completion_tokens`
 * include the reasoning tokens.
 * @returns undefined if no valid usage was reported; a reported zero is valid here
 */
export function parseOpenAiUsage(reported: unknown): Usage | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined;
  const usage = reported as OpenAiUsage;
  const prompt = parseTokenCount(usage.prompt_tokens);
  const completion = parseTokenCount(usage.completion_tokens);
  if (prompt === undefined || completion === undefined) return undefined;
  const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details ?? {};
  const cacheRead = Math.min(
    parseTokenCount(cached_tokens) ?? parseTokenCount(usage.prompt_cache_hit_tokens) ?? 0,
    prompt,
  );
  const cacheWrite = Math.min(parseTokenCount(cache_write_tokens) ?? 0, prompt - cacheRead);
  const reasoning = Math.min(parseTokenCount(usage.completion_tokens_details?.reasoning_tokens) ?? 0, completion);
  return { input: prompt - cacheRead - cacheWrite, cacheRead, cacheWrite, output: completion - reasoning, reasoning };
}
