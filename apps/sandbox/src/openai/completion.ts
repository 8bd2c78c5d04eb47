/** Creates OpenAI's non-streaming chat completion. */

import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { createGroqFields, getCallId, getCompletionId, getFinishReason, ROUTED_PROVIDER } from './identity.ts';
import { toChatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { toReasoningFields } from './reasoning.ts';
import type { ResponseFields } from './response-fields.ts';
import { toCitations } from './responses/output.ts';
import { toUsage } from './usage.ts';

export function createCompletion(
  output: SandboxModelOutput<OpenAiModel>,
  { fields, serviceTier, logprobs: top }: SandboxChatRequest,
  fault: Fault | undefined,
) {
  const { created, model, n } = output;
  const { lacks, added } = fields;
  const createChoice = (index: number) => {
    return {
      index,
      message: { ...createMessage(output, index, { fault, lacks }), ...toReasoningFields(output, fields.reasoning) },
      logprobs: toChatLogprobs(output, output.text, top),
      finish_reason: getFinishReason(output),
    };
  };
  return {
    id: getCompletionId(output),
    ...(added === 'provider' ? { provider: ROUTED_PROVIDER } : {}),
    object: 'chat.completion',
    created,
    model: model.snapshot,
    choices: Array.from({ length: n }, (_, index) => createChoice(index)),
    ...(fault === 'no_usage' ? {} : { usage: toUsage(output, fault, fields) }),
    service_tier: output.reportedBill.serviceTier ?? serviceTier,
    system_fingerprint: model.fingerprint ?? (fields.hasNullFingerprint ? null : undefined),
    ...(added === 'x_groq' ? { x_groq: createGroqFields(output) } : {}),
  };
}

interface MessageOptions extends Pick<ResponseFields, 'lacks'> {
  readonly fault: Fault | undefined;
}

function createMessage(output: SandboxModelOutput, index: number, { fault, lacks }: MessageOptions) {
  const { text, tool, takesText, calls } = output;
  const hasRefusal = !lacks.has('refusal');
  if (fault === 'refusal' && hasRefusal) return { role: 'assistant', content: null, refusal: text, annotations: [] };
  const rest = hasRefusal ? { refusal: null, annotations: toChatCitations(output) } : {};
  if (tool === undefined) return { role: 'assistant', content: text, ...rest };
  const tool_calls = Array.from({ length: calls }, (_, call) => {
    return {
      id: getCallId(output, index, call),
      ...(takesText ? toCustomCall(tool, text) : toFunctionCall(tool, text)),
    };
  });
  return { role: 'assistant', content: null, tool_calls, ...rest };
}

/** Returns the sources of a message: the first page of each successful search. */
export function toChatCitations(output: SandboxModelOutput) {
  return toCitations(output).map(({ type, ...url_citation }) => ({ type, url_citation }));
}

export function toFunctionCall(name: string, text: string) {
  return { type: 'function', function: { name, arguments: text } };
}

export function toCustomCall(name: string, input: string) {
  return { type: 'custom', custom: { name, input } };
}
