import { type Completion, type CompletionStream, UpstreamError } from '#application';

/**
 * Adds to a streamed response, or to the failure of a request, how many reasoning tokens the request permitted.
 * @param maxReasoningTokens undefined if only the output limit limits them
 */
export async function withReasoningLimit(
  response: Promise<Completion | CompletionStream>,
  maxReasoningTokens: number | undefined,
): Promise<Completion | CompletionStream> {
  if (maxReasoningTokens === undefined) return response;
  try {
    const received = await response;
    return received.kind === 'stream' ? { ...received, maxReasoningTokens } : received;
  } catch (error) {
    throw error instanceof UpstreamError ? error.withDetails({ maxReasoningTokens }) : error;
  }
}
