import { type ChatCall, type Completion, type CompletionStream, UpstreamError } from '#application';

/**
 * Reports how many reasoning tokens a request permits when it is sent, and adds this number to its streamed response or
 * to its failure.
 * @param maxReasoningTokens undefined if only the output limit limits them
 */
export async function withReasoningLimit(
  call: Pick<ChatCall, 'onSend'>,
  response: Promise<Completion | CompletionStream>,
  maxReasoningTokens: number | undefined,
): Promise<Completion | CompletionStream> {
  call.onSend?.(maxReasoningTokens);
  if (maxReasoningTokens === undefined) return response;
  try {
    const received = await response;
    return received.kind === 'stream' ? { ...received, maxReasoningTokens } : received;
  } catch (error) {
    throw error instanceof UpstreamError ? error.withDetails({ maxReasoningTokens }) : error;
  }
}
