import { isJsonObject } from '#kernel';
import { sanitizeThirdPartyText } from '../third-party-text.ts';

/** Anthropic's categories are words such as `cyber`. */
const CATEGORY = /^[a-z][a-z0-9_]{0,63}$/;

/**
 * Why a model declined to respond, in Anthropic's format. The choice of a chat completion contains it as `stop_details`.
 * https://docs.claude.com/en/api/handling-stop-reasons
 */
export interface StopDetails {
  readonly type: 'refusal';
  /** The policy that the request violates; null if the provider names none. */
  readonly category: string | null;
  /** For people; null if the provider explains nothing. */
  readonly explanation: string | null;
}

/** Parses the details as a provider reports them; undefined if there are none. Unusual values become null. */
export function parseStopDetails(reported: unknown): StopDetails | undefined {
  if (!isJsonObject(reported) || reported.type !== 'refusal') return undefined;
  const { category, explanation } = reported;
  return {
    type: 'refusal',
    category: typeof category === 'string' && CATEGORY.test(category) ? category : null,
    explanation: typeof explanation === 'string' ? sanitizeThirdPartyText(explanation) || null : null,
  };
}
