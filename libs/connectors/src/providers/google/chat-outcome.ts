/** How a response of Gemini ends, and which failures it can report: https://ai.google.dev/api/generate-content */
import { parseStopDetails, type StopDetails, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { MESSAGE_CONTENT_POLICY } from '../../http/error-rules.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';

/** A response, or an event of a stream, which has the same format. */
export interface GenerateContentResponse {
  readonly responseId?: unknown;
  readonly candidates?: readonly Candidate[];
  readonly promptFeedback?: { readonly blockReason?: unknown; readonly blockReasonMessage?: unknown } | null;
  readonly usageMetadata?: unknown;
  readonly error?: unknown;
}

export interface Candidate {
  readonly content?: { readonly parts?: readonly (GeminiPart | null)[] | null } | null;
  readonly finishReason?: unknown;
  readonly finishMessage?: unknown;
  readonly groundingMetadata?: unknown;
}

export interface GeminiPart {
  readonly text?: unknown;
  /** True for a summary of the model's reasoning. */
  readonly thought?: unknown;
  readonly thoughtSignature?: unknown;
  readonly functionCall?: { readonly id?: unknown; readonly name?: unknown; readonly args?: unknown } | null;
}

/** Reasons for which the rest of a response, or all of it, is withheld. */
const WITHHELD: ReadonlySet<unknown> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'LANGUAGE',
  'OTHER',
]);
const TOO_LONG: ReadonlySet<unknown> = new Set(['MAX_TOKENS', 'CONTINUATION']);
/** The model has generated a call that cannot be read. What it sent before is not a complete response. */
const INVALID_CALL: ReadonlySet<unknown> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
]);
/** Reasons are words such as `PROHIBITED_CONTENT`. */
const REASON = /^[A-Z][A-Z_]{1,63}$/;

/** The end of a choice in OpenAI's format, with the fields that OpenAI's API does not have. */
export interface CompletionEnd {
  readonly finish_reason: string;
  readonly stop_details?: StopDetails;
}

/** What is known of a response when it ends. */
export interface ResponseState {
  /** Whether text, reasoning or a call has arrived. */
  readonly hasOutput: boolean;
  readonly hasCalls: boolean;
  readonly usage: Usage | undefined;
}

/**
 * Returns the end of a choice. An unknown reason counts as a regular end.
 * @param candidate has a finish reason
 * @throws UpstreamError if the complete response is withheld, or ends with an invalid call
 */
export function toCompletionEnd(
  { finishReason, finishMessage }: Pick<Candidate, 'finishReason' | 'finishMessage'>,
  response: GenerateContentResponse,
  { hasOutput, hasCalls, usage }: ResponseState,
): CompletionEnd {
  if (INVALID_CALL.has(finishReason))
    throw new UpstreamError('upstream_error', 'The model generated an invalid tool call', {
      hasOpenCost: usage === undefined,
      unpaidUsage: usage,
      vendorId: getResponseId(response),
    });
  if (!WITHHELD.has(finishReason))
    return { finish_reason: TOO_LONG.has(finishReason) ? 'length' : hasCalls ? 'tool_calls' : 'stop' };
  if (!hasOutput) throw createPolicyError(finishReason, finishMessage, response, usage);
  const category = String(finishReason).toLowerCase();
  const details = parseStopDetails({ type: 'refusal', category, explanation: finishMessage });
  return { finish_reason: 'content_filter', ...(details ? { stop_details: details } : {}) };
}

/** @throws UpstreamError if the prompt was blocked, so that there is no candidate */
export function assertNotBlocked(response: GenerateContentResponse, usage: Usage | undefined): void {
  const { blockReason, blockReasonMessage } = response.promptFeedback ?? {};
  if ((blockReason ?? null) !== null) throw createPolicyError(blockReason, blockReasonMessage, response, usage);
}

/** @param usage what the provider counted, and invoices */
function createPolicyError(
  reason: unknown,
  message: unknown,
  response: GenerateContentResponse,
  usage: Usage | undefined,
): UpstreamError {
  const suffix = typeof reason === 'string' && REASON.test(reason) ? ` (${reason})` : '';
  return new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, {
    status: 200,
    upstreamMessage: typeof message === 'string' ? message : `${MESSAGE_CONTENT_POLICY}${suffix}`,
    usage,
    vendorId: getResponseId(response),
  });
}

/** Returns Google's id of a response; undefined if it has none. */
export function getResponseId({ responseId }: GenerateContentResponse): string | undefined {
  return parseProviderRequestId({ id: responseId });
}
