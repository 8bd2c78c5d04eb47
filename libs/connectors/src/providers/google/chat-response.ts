/** Translates Gemini's non-streaming response to OpenAI's `chat.completion`. */
import { type Completion, type CompletionIdentity, UpstreamError } from '#application';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { extractGeneratedText } from '../chat/partial-text.ts';
import { assertNotBlocked, type GenerateContentResponse, getResponseId, toCompletionEnd } from './chat-outcome.ts';
import { type OutputPart, readParts } from './chat-parts.ts';
import { parseGeminiUsage } from './chat-usage.ts';
import { GroundingTracker } from './grounding.ts';
import { toSignatureDetail } from './thought-signatures.ts';

export interface CompletionOptions {
  /** Google's name of the model. */
  readonly model: string;
  /** Leaves the model's reasoning out of the completion. */
  readonly withoutReasoning: boolean;
  readonly billFormat: BillFormat;
  /** Whether Google's search was enabled. */
  readonly hasSearched?: boolean;
}

/** @throws UpstreamError if `text` is not a response, or reports that the content is withheld */
export function parseGeminiCompletion(
  text: string,
  identity: CompletionIdentity,
  { model, withoutReasoning, billFormat, hasSearched = false }: CompletionOptions,
): Completion {
  const response = parseResponse(text);
  const usage = parseGeminiUsage(response.usageMetadata);
  assertNotBlocked(response, usage);
  const [candidate] = response.candidates ?? [];
  const parts = readParts(response);
  if (typeof candidate?.finishReason !== 'string') throw invalidResponseError(text, response);
  const hasCalls = parts.some(({ kind }) => kind === 'call');
  const end = toCompletionEnd(candidate, response, { hasOutput: parts.length > 0, hasCalls, usage });
  const grounding = new GroundingTracker();
  const { annotations } = grounding.record(response, joinText(parts, 'text'));
  const message = {
    ...toAssistantMessage(parts, model, withoutReasoning),
    ...(hasSearched ? { annotations } : {}),
    refusal: end.stop_details?.explanation ?? null,
  };
  const choices = [{ index: 0, message, logprobs: null, ...end }];
  return {
    kind: 'complete',
    protocol: 'chat',
    body: { ...identity, object: 'chat.completion', choices, system_fingerprint: null },
    usage,
    vendorId: () => getResponseId(response),
    reportedBill: parseReportedBill(response, billFormat),
    getDeliveredText: () => parts.map(getGeneratedText).join(''),
    ...(hasSearched ? { searches: { statuses: grounding.statuses, invoiced: grounding.invoiced } } : {}),
  };
}

function parseResponse(text: string): GenerateContentResponse {
  let response: GenerateContentResponse | null = null;
  try {
    response = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  if (typeof response !== 'object' || response === null) throw invalidResponseError(text, {});
  return response;
}

function invalidResponseError(text: string, response: GenerateContentResponse): UpstreamError {
  return new UpstreamError('upstream_error', 'The provider sent a response that is not a completion', {
    status: 200,
    deliveredText: extractGeneratedText(text),
    vendorId: getResponseId(response),
  });
}

function toAssistantMessage(parts: readonly OutputPart[], model: string, withoutReasoning: boolean) {
  const [text, reasoning] = [joinText(parts, 'text'), withoutReasoning ? '' : joinText(parts, 'thought')];
  const calls = parts.flatMap((part) => (part.kind === 'call' ? [part] : []));
  const signed = withoutReasoning ? [] : calls.filter(({ signature }) => signature !== undefined);
  const details = signed.map(({ call, signature = '' }, index) => toSignatureDetail(index, call, signature, model));
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ call }) => call) }),
  };
}

function joinText(parts: readonly OutputPart[], kind: 'text' | 'thought'): string {
  return parts.map((part) => (part.kind === kind ? part.text : '')).join('');
}

/** Returns the text that the tokens of a part are counted by if the provider does not report them. */
export function getGeneratedText(part: OutputPart): string {
  return part.kind === 'call' ? part.call.function.name + part.call.function.arguments : part.text;
}
