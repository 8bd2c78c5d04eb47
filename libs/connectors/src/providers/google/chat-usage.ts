import type { Usage } from '#domain';
import { parseTokenCount } from '../../http/parse-reported.ts';

interface GeminiUsage {
  readonly promptTokenCount?: unknown;
  readonly cachedContentTokenCount?: unknown;
  readonly candidatesTokenCount?: unknown;
  readonly thoughtsTokenCount?: unknown;
}

/**
 * Converts Gemini's `usageMetadata` to disjoint units (`GenerateContentResponseUsageMetadata` of
 * https://github.com/googleapis/js-genai). The prompt includes cached tokens, and the candidates do not include
 * thoughts, which are billed as output. `toolUsePromptTokenCount` is the text that Google's search has found, which is
 * not billed as input (https://ai.google.dev/gemini-api/docs/pricing). Gemini omits a count of zero.
 * @returns undefined if no valid usage was reported; a reported zero is valid here
 */
export function parseGeminiUsage(reported: unknown): Usage | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined;
  const usage = reported as GeminiUsage;
  const prompt = parseTokenCount(usage.promptTokenCount);
  if (prompt === undefined) return undefined;
  const cacheRead = Math.min(parseTokenCount(usage.cachedContentTokenCount) ?? 0, prompt);
  return {
    input: prompt - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output: parseTokenCount(usage.candidatesTokenCount) ?? 0,
    reasoning: parseTokenCount(usage.thoughtsTokenCount) ?? 0,
  };
}
